import { type ChildProcess, execFileSync, spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { connectAsync, type MqttClient } from "mqtt";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { until } from "../../../../scripts/harness/product.ts";
import { type Incoming, subscribe } from "../../../../src/programs/bridge/subscriber.ts";
import { anyFreePort } from "../../../../src/programs/stack/ports.ts";

const MOSQUITTO = ["/usr/sbin/mosquitto", "mosquitto"].find(
  (command) => spawnSync(command, ["-h"]).error === undefined,
);

/**
 * Tests the rules of docs/brokers.md on Mosquitto, with passwords instead of tokens. The tests are skipped if Mosquitto is not installed.
 * broker.test.ts tests the same rules, and more, on our own broker.
 */
describe.skipIf(MOSQUITTO === undefined)("Mosquitto with the rules of the docs", () => {
  const folder = mkdtempSync(join(tmpdir(), "mosquitto-"));
  const clients: MqttClient[] = [];
  let broker: ChildProcess;
  let port: number;

  const start = async (): Promise<void> => {
    broker = spawn(MOSQUITTO ?? "", ["-c", join(folder, "mosquitto.conf")], { stdio: "ignore" });
    await until(async () => {
      const client = await connect("bridge", { clientId: "probe" }).catch(() => undefined);
      await client?.endAsync(true);
      return client !== undefined;
    });
  };
  const connect = async (username: string, options: object = {}): Promise<MqttClient> => {
    const client = await connectAsync(`mqtt://127.0.0.1:${port}`, {
      username,
      password: "secret",
      reconnectPeriod: 0,
      connectTimeout: 1_000,
      ...options,
    });
    client.on("error", () => {});
    clients.push(client);
    return client;
  };

  beforeAll(async () => {
    port = await anyFreePort();
    const passwords = join(folder, "passwords");
    writeFileSync(passwords, "");
    for (const name of ["a", "b", "bridge"]) execFileSync("mosquitto_passwd", ["-b", passwords, name, "secret"]);
    writeFileSync(
      join(folder, "acl"),
      "pattern write agent/%u/data\npattern write agent/%u/result\npattern write agent/%u/status\n" +
        "pattern read agent/%u/command\n\nuser bridge\ntopic readwrite #\n",
    );
    writeFileSync(
      join(folder, "mosquitto.conf"),
      `listener ${port} 127.0.0.1\nallow_anonymous false\npassword_file ${passwords}\nacl_file ${join(folder, "acl")}\n` +
        `user root\npersistence true\npersistence_location ${folder}/\nmax_queued_messages 1000000\n`,
    );
    chmodSync(folder, 0o777);
    await start();
  });

  afterAll(async () => {
    await Promise.all(clients.map((client) => client.endAsync(true)));
    const ended = once(broker, "exit");
    broker.kill("SIGTERM");
    // It writes to the folder until it exits.
    await ended;
    rmSync(folder, { recursive: true, force: true });
  });

  it("forwards only what agents publish to their own topics", async () => {
    const [subscriber, publisher] = [await connect("bridge"), await connect("a")];
    const received: string[] = [];
    subscriber.on("message", (topic) => void received.push(topic));
    await subscriber.subscribeAsync("#", { qos: 1 });
    const own = ["data", "result", "status"].map((level) => `agent/a/${level}`);
    for (const topic of ["agent/b/data", "agent/a/command", "emulator_spinup", ...own]) {
      await publisher.publishAsync(topic, "x", { qos: 1 });
    }
    await until(() => received.length >= own.length);
    expect(received).toEqual(own);
  });

  it("delivers to an agent only its own commands", async () => {
    const [publisher, subscriber] = [await connect("bridge"), await connect("a")];
    const received: string[] = [];
    subscriber.on("message", (topic) => void received.push(topic));
    await subscriber.subscribeAsync(["agent/+/command", "agent/a/command"], { qos: 1 });
    for (const name of ["b", "a"]) await publisher.publishAsync(`agent/${name}/command`, "x", { qos: 1 });
    await until(() => received.length > 0);
    expect(new Set(received)).toEqual(new Set(["agent/a/command"]));
  });

  it("delivers unacknowledged messages again, and shares messages among several bridges", async () => {
    const publisher = await connect("a");
    const bridge = async (id: string, onMessage: (message: Incoming) => void) => {
      const stop = new AbortController();
      const ended = subscribe({
        ...{ url: `mqtt://127.0.0.1:${port}`, username: "bridge", password: "secret", clientId: `bridge-${id}` },
        topics: ["$share/bridge/agent/+/data"],
        signal: stop.signal,
        drained: async () => {},
        onMessage: (message) => {
          onMessage(message);
          return undefined;
        },
      });
      return async () => {
        stop.abort();
        // Stored messages may arrive before the broker confirms the subscription. Then the stop interrupts the subscription.
        await ended.catch(() => {});
      };
    };
    const [first, second, again]: [string[], string[], string[]] = [[], [], []];
    const stops = [
      await bridge("1", ({ payload, acknowledge }) => {
        first.push(payload.toString());
        acknowledge();
      }),
      // Never acknowledges a message.
      await bridge("2", ({ payload }) => void second.push(payload.toString())),
    ];
    const numbers = Array.from({ length: 20 }, (_, i) => String(i));
    await until(async () => {
      await publisher.publishAsync("agent/a/data", "to both bridges", { qos: 1 });
      return first.length > 0 && second.length > 0;
    });
    for (const number of numbers) await publisher.publishAsync("agent/a/data", number, { qos: 1 });
    await until(() => numbers.every((number) => first.includes(number) || second.includes(number)));
    expect(numbers.filter((number) => first.includes(number) && second.includes(number))).toEqual([]);
    await stops[1]?.();
    stops[1] = await bridge("2", ({ payload, acknowledge }) => {
      again.push(payload.toString());
      acknowledge();
    });
    await until(() => second.every((number) => again.includes(number)));
    await Promise.all(stops.map((stop) => stop()));
  });
});
