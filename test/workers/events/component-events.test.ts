import { env, runInDurableObject } from "cloudflare:test";
import { describe, expect, it } from "vitest";
import { ComponentWatch } from "../../../src/delivery/component-watch.ts";
import { Publisher } from "../../../src/delivery/publisher.ts";
import type { NewEvent } from "../../../src/events/event-log.ts";
import { uniqueName } from "../support.ts";
import { eventLog, eventsOf } from "./event-support.ts";

type States = Record<string, "up" | "down">;

/** Runs a test with a watch inside an object. The test decides the states, and whether the event log accepts events. */
const withWatch = (
  test: (watch: {
    run(states: States, confirmed?: States): Promise<void>;
    restart(): void;
    log: { isUp: boolean };
  }) => Promise<void>,
) =>
  runInDurableObject(env.PUBLISHER.getByName(uniqueName()), async (_, { storage }) => {
    const checks: States[] = [];
    const log = { isUp: true };
    const health = { check: async () => checks.shift() ?? {} };
    const append = async (events: readonly NewEvent[]) => {
      if (!log.isUp) throw new Error("The log is down");
      await eventLog.append(events);
      // The response is lost: the next run sends the events again.
      if (events.some(({ data }) => String(data.component).startsWith("lost"))) throw new Error("No response");
    };
    const create = () => new ComponentWatch({ storage, health, eventLog: { append }, confirmAfterMs: 0 });
    let watch = create();
    await test({
      log,
      restart: () => {
        watch = create();
      },
      run: async (states, confirmed = states) => {
        checks.splice(0, checks.length, states, confirmed);
        await watch.run();
      },
    });
  });

const summary = (events: Awaited<ReturnType<typeof eventsOf>>) =>
  events.map(({ type, severity, actor, data }) => [type, severity, actor, data.component]);

describe("the watch of the components", () => {
  it("writes one event for each change, also if it restarts", async () => {
    const name = uniqueName();
    const found = await eventsOf(name, () =>
      withWatch(async ({ run, restart }) => {
        const [up, down] = [{ [name]: "up" }, { [name]: "down" }] as const;
        for (const states of [up, down, down]) await run(states);
        restart();
        for (const states of [down, up, up, down]) await run(states);
      }),
    );
    expect(summary(found)).toEqual([
      ["component.down", "critical", "service", name],
      ["component.up", "info", "service", name],
      ["component.down", "critical", "service", name],
    ]);
  });

  it("ignores a state that a second check does not confirm", async () => {
    const name = uniqueName();
    const found = await eventsOf(name, () =>
      withWatch(async ({ run }) => {
        await run({ [name]: "down" }, { [name]: "up" });
        await run({ [name]: "up" }, { [name]: "down" });
      }),
    );
    expect(found).toEqual([]);
  });

  it("writes the changes during an outage of the log afterwards, once", async () => {
    const name = `lost-${uniqueName()}`;
    const found = await eventsOf(name, () =>
      withWatch(async ({ run, restart, log }) => {
        log.isUp = false;
        await run({ [name]: "down" });
        restart();
        await scheduler.wait(2);
        await run({ [name]: "up" });
        log.isUp = true;
        for (let i = 0; i < 3; i++) await run({ [name]: "up" });
      }),
    );
    expect(summary(found).map(([type]) => type)).toEqual(["component.down", "component.up"]);
  });

  it("runs with the alarm of the publisher, which a check of its health starts", async () => {
    const found = await eventsOf("broker", () =>
      runInDurableObject(env.PUBLISHER.getByName(uniqueName()), async (_, state) => {
        const changes: object = { MQTT_URL: "mqtt://127.0.0.1:9" };
        const publisher = new Publisher(state, { ...env, ...changes });
        await publisher.check();
        expect(await state.storage.getAlarm()).not.toBeNull();
        await publisher.alarm();
        await state.storage.deleteAlarm();
      }),
    );
    expect(summary(found)).toEqual([["component.down", "critical", "service", "broker"]]);
  });
});
