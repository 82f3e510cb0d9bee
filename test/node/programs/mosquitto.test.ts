import { type ChildProcess, execFileSync, spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { connectAsync, type MqttClient } from "mqtt";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { until } from "../../../scripts/harness/product.ts";
import { type Incoming, listen } from "../../../src/programs/bridge/subscriber.ts";
import { anyFreePort } from "../../../src/programs/stack/ports.ts";

const MOSQUITTO = ["/usr/sbin/mosquitto", "mosquitto"].find(
  (command) => spawnSync(command, ["-h"]).error === undefined,
);

/**
 * The rules of docs/brokers.md on a broker that is not ours, with passwords in place of tokens. Where Mosquitto is not installed there is
 * nothing to test; our own broker is held to the same and more in broker.test.ts.
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
      ...{ username, password: "secret", reconnectPeriod: 0, connectTimeout: 1_000 },
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
    // It writes into the folder to its last.
    await ended;
    rmSync(folder, { recursive: true, force: true });
  });

  it("passes on what agents say to their own topics, and nothing else", async () => {
    const [listener, speaker] = [await connect("bridge"), await connect("a")];
    const heard: string[] = [];
    listener.on("message", (topic) => void heard.push(topic));
    await listener.subscribeAsync("#", { qos: 1 });
    const own = ["data", "result", "status"].map((level) => `agent/a/${level}`);
    for (const topic of ["agent/b/data", "agent/a/command", "emulator_spinup", ...own]) {
      await speaker.publishAsync(topic, "x", { qos: 1 });
    }
    await until(() => heard.length >= own.length);
    expect(heard).toEqual(own);
  });

  it("lets an agent hear its own commands only", async () => {
    const [speaker, listener] = [await connect("bridge"), await connect("a")];
    const heard: string[] = [];
    listener.on("message", (topic) => void heard.push(topic));
    await listener.subscribeAsync(["agent/+/command", "agent/a/command"], { qos: 1 });
    for (const name of ["b", "a"]) await speaker.publishAsync(`agent/${name}/command`, "x", { qos: 1 });
    await until(() => heard.length > 0);
    expect(new Set(heard)).toEqual(new Set(["agent/a/command"]));
  });

  it("brings the bridge again what it has not acknowledged, and shares among several", async () => {
    const speaker = await connect("a");
    const bridge = async (id: string, take: (message: Incoming) => void) => {
      const stop = new AbortController();
      const ended = listen({
        ...{ url: `mqtt://127.0.0.1:${port}`, username: "bridge", password: "secret", clientId: `bridge-${id}` },
        topics: ["$share/bridge/agent/+/data"],
        signal: stop.signal,
        drained: async () => {},
        onMessage: (message) => {
          take(message);
          return undefined;
        },
      });
      return async () => {
        stop.abort();
        // What was kept may have come before the subscription was confirmed, and then this end cuts that short.
        await ended.catch(() => {});
      };
    };
    const [first, second, again]: [string[], string[], string[]] = [[], [], []];
    const stops = [
      await bridge("1", ({ payload, acknowledge }) => {
        first.push(payload.toString());
        acknowledge();
      }),
      // Takes, and never says that it has.
      await bridge("2", ({ payload }) => void second.push(payload.toString())),
    ];
    const numbers = Array.from({ length: 20 }, (_, i) => String(i));
    await until(async () => {
      await speaker.publishAsync("agent/a/data", "are you both there?", { qos: 1 });
      return first.length > 0 && second.length > 0;
    });
    for (const number of numbers) await speaker.publishAsync("agent/a/data", number, { qos: 1 });
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
