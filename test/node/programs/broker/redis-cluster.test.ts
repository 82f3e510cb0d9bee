import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Redis } from "ioredis";
import { connectAsync, connect as connectNow, type IClientOptions, type MqttClient } from "mqtt";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { hasRedis, redisComponent } from "../../../../scripts/harness/brokers/redis-server.ts";
import { until } from "../../../../scripts/harness/product.ts";
import { type Component, Supervisor } from "../../../../src/programs/stack/supervisor.ts";
import { startLoad } from "../../../support/cluster/broker-load.ts";
import { TokenIssuer } from "../../../support/token-issuer.ts";

const NODES = ["one", "two"];

describe.skipIf(!hasRedis)("two brokers with Redis (of Debian's package redis-server)", () => {
  const supervisor = new Supervisor();
  const folder = mkdtempSync(join(tmpdir(), "broker-cluster-"));
  const clients: MqttClient[] = [];
  const components = new Map<string, Component>();
  const urls: string[] = [];
  let issuer: TokenIssuer;
  let redis: Redis;

  beforeAll(async () => {
    issuer = await TokenIssuer.start();
    const server = await redisComponent(join(folder, "redis"));
    redis = new Redis(server.url);
    redis.on("error", () => {});
    const start = async (component: Component) => {
      components.set(component.name, component);
      await supervisor.start(component);
    };
    await start(server.component);
    for (const name of NODES) {
      const { component, tcpPort } = await issuer.broker(join(folder, name), server.url);
      urls.push(`mqtt://127.0.0.1:${tcpPort}`);
      await start({ ...component, name });
    }
  });

  afterAll(async () => {
    await Promise.all(clients.map((client) => client.endAsync(true)));
    redis.disconnect();
    await supervisor.stop();
    issuer.close();
    rmSync(folder, { recursive: true, force: true });
  });

  const kill = async (name: string): Promise<void> => {
    const pid = supervisor.pids[name] ?? 0;
    process.kill(pid, "SIGKILL");
    await until(async () => supervisor.pids[name] !== pid && (await components.get(name)?.ready([])) === true);
  };
  const agentOf = async (name: string, clientId: string): Promise<IClientOptions> => {
    return { username: name, password: await issuer.sign({ sub: name }), clientId, reconnectPeriod: 0 };
  };
  const serviceOf = async (clientId: string): Promise<IClientOptions> => {
    return { username: "bridge", password: await issuer.signForApp("bridge"), clientId, reconnectPeriod: 0 };
  };
  const connect = async (node: number, options: IClientOptions): Promise<MqttClient> => {
    const client = await connectAsync(urls[node] ?? "", options);
    clients.push(client.on("error", () => {}));
    return client;
  };
  /** Connects, and returns the messages that it receives. Sets the handler first: queued messages arrive at once. */
  const receive = (node: number, options: IClientOptions): string[] => {
    const client = connectNow(urls[node] ?? "", options);
    clients.push(client.on("error", () => {}));
    const received: string[] = [];
    client.on("message", (_topic, payload) => received.push(payload.toString()));
    return received;
  };

  it("deliver what is published at one to the clients of the other, in order", async () => {
    const [persistent, clean] = [await serviceOf("persistent"), await serviceOf("clean")];
    const received: string[][] = [[], []];
    for (const [i, options] of [{ ...persistent, clean: false }, clean].entries()) {
      const client = await connect(1, options);
      client.on("message", (_topic, payload) => received[i]?.push(payload.toString()));
      await client.subscribeAsync("agent/+/data", { qos: 1 });
    }
    const agent = await connect(0, await agentOf("a", "1"));
    const messages = Array.from({ length: 200 }, (_, n) => String(n));
    await Promise.all(messages.map((message) => agent.publishAsync("agent/a/data", message, { qos: 1 })));
    await until(() => received.every(({ length }) => length >= messages.length));
    expect(received).toEqual([messages, messages]);
  });

  it("share a session: the queue of a client that disconnects from one is delivered by the other", async () => {
    const options: IClientOptions = { ...(await serviceOf("moving")), clean: false };
    const first = await connect(0, options);
    await first.subscribeAsync(["agent/+/result", "emulator_spinup"], { qos: 1 });
    await first.endAsync();
    const agent = await connect(1, await agentOf("a", "2"));
    for (const n of ["1", "2", "3"]) await agent.publishAsync("agent/a/result", n, { qos: 1 });
    const received = receive(1, options);
    await until(() => received.length === 3);
    expect(received).toEqual(["1", "2", "3"]);
    // A client is connected to one node only.
    const second = clients.at(-1) as MqttClient;
    const closed = new Promise<void>((resolve) => second.once("close", () => resolve()));
    await connect(0, options);
    await closed;
  });

  it("limit the sessions and the queue of an agent together", async () => {
    const session = async (n: number): Promise<IClientOptions> => ({
      ...(await agentOf("many", `${n}`)),
      clean: false,
    });
    for (const n of [1, 2, 3, 4, 5]) {
      const client = await connect(n % 2, await session(n));
      await client.subscribeAsync("agent/many/command", { qos: 1 });
      await client.endAsync();
    }
    const kept = (await redis.smembers("broker:agent:many")).map((id) => Number(id.split("/")[2])).toSorted();
    expect(kept).toHaveLength(4);
    expect(kept).toContain(5);
    const publisher = await connect(0, await serviceOf("publisher"));
    for (let n = 1; n <= 150; n++) await publisher.publishAsync("agent/many/command", String(n), { qos: 1 });
    const received = receive(1, await session(kept[0] ?? 0));
    await until(() => received.includes("150"));
    expect(received).toEqual(Array.from({ length: 100 }, (_, i) => String(51 + i)));
  });

  it("share messages among several bridges, and leave none to a bridge that is away", async () => {
    const bridge = async (node: number, clientId: string): Promise<[MqttClient, string[]]> => {
      const client = await connect(node, { ...(await serviceOf(clientId)), clean: false });
      const received: string[] = [];
      client.on("message", (_topic, payload) => received.push(payload.toString()));
      await client.subscribeAsync(["$share/bridges/agent/+/data", "$share/bridges/agent/s/result"], { qos: 1 });
      return [client, received];
    };
    const [[, first], [second, other]] = [await bridge(0, "shared-1"), await bridge(1, "shared-2")];
    const agent = await connect(0, await agentOf("s", "1"));
    const send = (texts: string[]) =>
      Promise.all(texts.map((text, i) => agent.publishAsync(`agent/s/${i % 2 ? "data" : "result"}`, text, { qos: 1 })));
    const numbers = Array.from({ length: 40 }, (_, n) => String(n));
    await send(numbers);
    await until(() => first.length + other.length >= numbers.length);
    expect([...first, ...other].toSorted()).toEqual(numbers.toSorted());
    expect(Math.min(first.length, other.length)).toBeGreaterThan(10);
    await second.endAsync();
    await until(async () => {
      const before = other.length + first.length;
      await send(["a", "b", "c", "d"]);
      await until(() => other.length + first.length >= before + 4, 1_000).catch(() => {});
      return ["a", "b", "c", "d"].every((text) => first.includes(text));
    });
    const clean = await connect(0, await serviceOf("clean-1"));
    await expect(clean.subscribeAsync("$share/bridges/agent/+/data", { qos: 1 })).rejects.toThrow();
  });

  it("lose no acknowledged message when each of them is killed under load", async () => {
    const names = ["k1", "k2", "k3", "k4"];
    const logins = await Promise.all(
      names.map(async (name) => ({ username: name, password: await issuer.sign({ sub: name }), clientId: "x" })),
    );
    const bridge = { username: "bridge", password: await issuer.signForApp("bridge"), clientId: "killed" };
    const load = await startLoad(urls.join(","), logins, bridge);
    const more = async (count: number) => {
      const before = load.acknowledged.size;
      await until(() => load.acknowledged.size >= before + count);
    };
    for (const name of NODES) {
      await more(300);
      await kill(name);
      await more(300);
    }
    await load.stopAgents();
    await until(() => load.missing().length === 0, 10_000).catch(() => {});
    await load.stop();
    expect(load.missing()).toEqual([]);
    expect(load.acknowledged.size).toBeGreaterThan(1_000);
  });

  it("accept no connection while Redis is away, and lose no acknowledged message", async () => {
    const options: IClientOptions = { ...(await serviceOf("outage")), clean: false };
    const subscriber = await connect(0, options);
    // Those that it receives before the outage are delivered, and do not come again.
    const receivedBefore: string[] = [];
    subscriber.on("message", (_topic, payload) => receivedBefore.push(payload.toString()));
    await subscriber.subscribeAsync("agent/+/status", { qos: 1 });
    const agent = await connect(1, await agentOf("a", "3"));
    const closed = new Promise<void>((resolve) => agent.once("close", () => resolve()));
    const acknowledged: string[] = [];
    for (let n = 0; n < 20; n++)
      agent.publish("agent/a/status", String(n), { qos: 1 }, (error) => {
        if (error === undefined || error === null) acknowledged.push(String(n));
        if (acknowledged.length === 10) process.kill(supervisor.pids.redis ?? 0, "SIGSTOP");
      });
    await closed;
    await until(async () => {
      const error = await connect(1, await agentOf("a", "4")).catch((error: Error) => error);
      return error instanceof Error && /ECONNREFUSED/.test(error.message);
    }, 20_000);
    process.kill(supervisor.pids.redis ?? 0, "SIGCONT");
    await kill("redis");
    await until(async () => (await connect(0, await agentOf("a", "4")).catch(() => undefined)) !== undefined);
    // This node may notice the end of Redis only now.
    const received = receive(0, { ...options, reconnectPeriod: 100, reconnectOnConnackError: true });
    const missing = () => acknowledged.filter((message) => ![...receivedBefore, ...received].includes(message));
    await until(() => missing().length === 0, 10_000).catch(() => {});
    expect(missing()).toEqual([]);
  });
});
