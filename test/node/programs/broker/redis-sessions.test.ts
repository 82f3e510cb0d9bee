import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Redis } from "ioredis";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { hasRedis, redisComponent } from "../../../../scripts/harness/brokers/redis-server.ts";
import { AGENT_SESSION_MS, SERVICE_SESSION_MS, SESSIONS_PER_AGENT } from "../../../../src/programs/broker/limits.ts";
import { RedisPersistence } from "../../../../src/programs/broker/redis/redis-persistence.ts";
import { RedisSessions } from "../../../../src/programs/broker/redis/redis-sessions.ts";
import { defineScripts } from "../../../../src/programs/broker/redis/scripts.ts";
import { Supervisor } from "../../../../src/programs/stack/supervisor.ts";

describe.skipIf(!hasRedis)("the sessions of brokers with Redis (of Debian's package redis-server)", () => {
  const supervisor = new Supervisor();
  const folder = mkdtempSync(join(tmpdir(), "redis-sessions-"));
  const nowMs = { value: 0 };
  let redis: Redis;
  let persistence: RedisPersistence;
  let disconnected: string[];

  beforeAll(async () => {
    const { component, url } = await redisComponent(folder);
    await supervisor.start(component);
    redis = new Redis(url);
    defineScripts(redis);
  });
  afterAll(async () => {
    redis.disconnect();
    await supervisor.stop();
    rmSync(folder, { recursive: true, force: true });
  });
  beforeEach(async () => {
    await redis.flushall();
    [nowMs.value, disconnected] = [Date.now(), []];
    const limit = { messages: 10, bytes: 1_000 };
    persistence = new RedisPersistence(redis, () => true, { agent: limit, service: { messages: 20, bytes: 5_000 } });
  });

  const node = (name: string) =>
    new RedisSessions(redis, {
      node: name,
      disconnect: (clientId) => void disconnected.push(clientId),
      removeSession: (clientId) => persistence.removeSession(clientId),
      now: () => nowMs.value,
    });
  const subscribe = (id: string, ...topics: string[]) =>
    persistence.addSubscriptions({ id } as never, topics.map((topic) => ({ topic, qos: 1 })) as never);
  const publish = async (topic: string, text: string) =>
    await persistence.storeBeforeAcknowledging({ cmd: "publish", topic, qos: 1, payload: text } as never);
  const queueOf = async (id: string): Promise<string[]> =>
    (await redis.xrange(`broker:queue:${id}`, "-", "+")).map(([, fields]) => fields[5] ?? "");
  /** Returns the keys that are left, except those of the nodes themselves. */
  const keys = async () =>
    (await redis.keys("*")).filter((key) => !/:(?:sequence|nodes|lease:.*)$/.test(key)).toSorted();

  it("expire a day after an agent has left and a week after a service has, with everything that belongs to them", async () => {
    const sessions = node("one");
    for (const id of ["agent/a/1", "bridge"]) {
      const connection = {};
      await sessions.open(id, false, connection);
      await subscribe(id, "agent/a/command", "agent/+/data");
      await publish("agent/a/command", "x");
      await sessions.close(id, connection);
    }
    nowMs.value += AGENT_SESSION_MS + 1;
    await sessions.removeExpired();
    expect(await sessions.owners()).toEqual([]);
    expect(await queueOf("bridge")).toEqual(["x"]);
    expect((await keys()).filter((key) => key.includes("agent/a/1"))).toEqual([]);
    nowMs.value += SERVICE_SESSION_MS - AGENT_SESSION_MS;
    await sessions.removeExpired();
    expect(await keys()).toEqual([]);
  });

  it("do not expire while a client is connected, at any node", async () => {
    const [one, two] = [node("one"), node("two")];
    const [former, latter] = [{}, {}];
    await one.open("bridge", false, former);
    await two.open("bridge", false, latter);
    // The first node notices later that its connection was replaced.
    await one.close("bridge", former);
    nowMs.value += SERVICE_SESSION_MS + 1;
    await one.removeExpired();
    expect(await redis.exists("broker:session:bridge")).toBe(1);
    await two.close("bridge", latter);
    nowMs.value += SERVICE_SESSION_MS + 1;
    await one.removeExpired();
    expect(await redis.exists("broker:session:bridge")).toBe(0);
  });

  it("end if their node is no longer alive", async () => {
    const [dead, alive] = [node("dead"), node("alive")];
    await Promise.all([dead.renewLease(), alive.renewLease()]);
    await dead.open("agent/a/1", false, {});
    await dead.open("bridge", false, {});
    // The client has reconnected at the other node.
    await alive.open("bridge", false, {});
    await redis.del("broker:lease:dead");
    await alive.endSessionsOfDeadNodes();
    expect(await redis.zrange("broker:ended", 0, -1)).toEqual(["agent/a/1"]);
    expect(await redis.smembers("broker:nodes")).toEqual(["alive"]);
  });

  it("are limited for an agent over all nodes: the oldest without a connection is removed first", async () => {
    const [one, two] = [node("one"), node("two")];
    const connections = Array.from({ length: SESSIONS_PER_AGENT }, () => ({}));
    for (const [i, connection] of connections.entries()) {
      nowMs.value++;
      await (i % 2 ? one : two).open(`agent/a/${i}`, false, connection);
    }
    await one.close("agent/a/1", connections[1] ?? {});
    await two.open("agent/a/new", false, {});
    const idsOf = async () => (await redis.smembers("broker:agent:a")).toSorted();
    expect(await idsOf()).toEqual(["agent/a/0", "agent/a/2", "agent/a/3", "agent/a/new"]);
    expect(disconnected).toEqual([]);
    nowMs.value++;
    await one.open("agent/a/newer", false, {});
    expect(disconnected).toEqual(["agent/a/0"]);
    await two.removeAgent("a");
    expect(await idsOf()).toEqual([]);
    expect(await one.owners()).toEqual([]);
  });

  it("are removed when the client requests a clean session", async () => {
    const sessions = node("one");
    await sessions.open("agent/a/1", false, {});
    await subscribe("agent/a/1", "agent/a/command");
    await sessions.open("agent/a/1", true, {});
    expect((await keys()).filter((key) => !key.includes("connected"))).toEqual([]);
    // The broker itself closes the other connection.
    expect(disconnected).toEqual([]);
  });

  it.each([
    ["agent/a/1", 10, 1_000],
    ["bridge", 20, 5_000],
  ])("keep the newest messages for %s, up to %i messages or %i bytes", async (id, messages, bytes) => {
    await subscribe(id, "agent/a/command");
    for (let n = 1; n <= 30; n++) await publish("agent/a/command", String(n));
    expect(await queueOf(id)).toEqual(Array.from({ length: messages }, (_, i) => String(31 - messages + i)));
    const text = "x".repeat(bytes / 4);
    for (let n = 1; n <= 8; n++) await publish("agent/a/command", text);
    expect(await queueOf(id)).toEqual([text, text, text]);
    expect(await redis.hget("broker:bytes", id)).toBe(String(3 * (bytes / 4 + "agent/a/command".length)));
  });

  it("accept no message while the memory of Redis is full, until a bridge has read some", async () => {
    persistence = new RedisPersistence(redis, () => true);
    await subscribe("bridge", "agent/+/data");
    const used = Number(/used_memory:(\d+)/.exec(await redis.info("memory"))?.[1]);
    await redis.config("SET", "maxmemory", String(used + 2_000_000));
    try {
      const text = "x".repeat(10_000);
      let accepted = 0;
      const fill = async () => {
        for (; ; accepted++) await publish("agent/a/data", text);
      };
      await expect(fill()).rejects.toThrow(/OOM/);
      expect(accepted).toBeGreaterThan(50);
      const sessions = node("one");
      await sessions.renewLease();
      await sessions.open("bridge", false, {});
      await subscribe("bridge", "agent/+/data", "agent/+/result");
      const entries = await redis.xrange("broker:queue:bridge", "-", "+", "COUNT", 50);
      for (const [id] of entries) await redis.brokerAcknowledge("bridge", Number.parseInt(id, 10));
      await publish("agent/a/data", "accepted again");
      expect((await queueOf("bridge")).length).toBe(accepted - 50 + 1);
    } finally {
      await redis.config("SET", "maxmemory", "0");
    }
  });

  it("leave a last will to the other nodes, which publish it once", async () => {
    const dead = new RedisPersistence(redis, () => true);
    await Promise.all([dead.setup({ id: "dead" }), persistence.setup({ id: "alive" })]);
    const will = { cmd: "publish", topic: "agent/a/status", qos: 1, payload: Buffer.from("offline"), retain: false };
    await dead.putWill({ id: "agent/a/1" } as never, { ...will } as never);
    await persistence.putWill({ id: "agent/b/1" } as never, { ...will } as never);
    await subscribe("bridge", "agent/+/status");
    const published: string[] = [];
    for (let pass = 0; pass < 2; pass++) {
      for await (const found of persistence.streamWill({ alive: 1 })) {
        const { clientId } = found as { clientId: string };
        published.push(clientId);
        await persistence.storeBeforeAcknowledging(found);
        await persistence.delWill({ id: clientId, brokerId: (found as { brokerId: string }).brokerId });
      }
    }
    expect(published).toEqual(["agent/a/1"]);
    expect(await queueOf("bridge")).toEqual(["offline"]);
    await persistence.delWill({ id: "agent/b/1" });
    expect(await redis.hlen("broker:wills")).toBe(0);
  });

  it("queue a message once for each client with a matching subscription", async () => {
    const filters = {
      exact: ["a/b"],
      level: ["a/+"],
      all: ["#"],
      below: ["a/b/#"],
      both: ["a/b", "+/b", "a/#"],
      none: ["a", "a/b/c", "+", "b/#", "a/b/+", "/a/b"],
    };
    for (const [id, topics] of Object.entries(filters)) await subscribe(id, ...topics);
    await publish("a/b", "1");
    await publish("$SYS/b", "2");
    const queues = Object.keys(filters).map(async (id) => [id, await queueOf(id)]);
    const one = ["1"];
    expect(Object.fromEntries(await Promise.all(queues))).toEqual({
      ...{ exact: one, level: one, all: one, below: one, both: one, none: [] },
    });
    await persistence.removeSubscriptions({ id: "both" }, ["a/b", "+/b"]);
    await persistence.cleanSubscriptions({ id: "all" });
    await publish("a/b", "3");
    expect([await queueOf("both"), await queueOf("all")]).toEqual([["1", "3"], ["1"]]);
  });
});
