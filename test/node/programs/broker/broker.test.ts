import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { connect as connectSocket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { connectAsync, connect as connectNow, type IClientOptions, type MqttClient } from "mqtt";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { hasRedis, redisComponent } from "../../../../scripts/harness/brokers/redis-server.ts";
import { until } from "../../../../scripts/harness/product.ts";
import { Supervisor } from "../../../../src/programs/stack/supervisor.ts";
import { TokenIssuer } from "../../../support/token-issuer.ts";

describe.each([
  { name: "the broker", isShared: false },
  { name: "the broker with Redis (of Debian's package redis-server)", isShared: true },
])("$name", ({ isShared }) => {
  if (isShared && !hasRedis) return it.skip("is tested if redis-server is installed");
  const supervisor = new Supervisor();
  const folder = mkdtempSync(join(tmpdir(), "broker-"));
  const clients: MqttClient[] = [];
  let issuer: TokenIssuer;
  let sign: TokenIssuer["sign"];
  let port: number;
  let webSocketPort: number;

  beforeAll(async () => {
    issuer = await TokenIssuer.start();
    ({ sign } = issuer);
    const redis = isShared ? await redisComponent(join(folder, "redis")) : undefined;
    if (redis !== undefined) await supervisor.start(redis.component);
    const { component, tcpPort, wsPort } = await issuer.broker(folder, redis?.url);
    [port, webSocketPort] = [tcpPort, wsPort];
    await supervisor.start(component);
  });

  afterAll(async () => {
    await Promise.all(clients.map((client) => client.endAsync(true)));
    await supervisor.stop();
    issuer.close();
    rmSync(folder, { recursive: true, force: true });
  });

  const connect = async (username: string, password: string): Promise<MqttClient> => {
    const client = await connectAsync(`mqtt://127.0.0.1:${port}`, { username, password, reconnectPeriod: 0 });
    client.on("error", () => {});
    clients.push(client);
    return client;
  };
  const agent = async (name: string) => await connect(name, await sign({ sub: name }));
  const service = async () => await connect("bridge", await issuer.signForApp("bridge"));
  const closed = (client: MqttClient) => new Promise((resolve) => client.once("close", () => resolve("closed")));

  /** Returns the messages that the broker has queued for a client, up to the one that was sent last. */
  const queued = async (options: IClientOptions, last: string): Promise<string[]> => {
    const received: string[] = [];
    const client = connectNow(`mqtt://127.0.0.1:${port}`, options);
    clients.push(client.on("error", () => {}));
    client.on("message", (_topic, payload) => received.push(payload.toString()));
    await until(() => received.includes(last), 3_000).catch(() => {});
    return received;
  };

  it("rejects a client without a valid token of its own", async () => {
    await expect(connectAsync(`mqtt://127.0.0.1:${port}`, { reconnectPeriod: 0 })).rejects.toThrow(/Not authorized/);
    await expect(connect("a", "no token")).rejects.toThrow(/Not authorized/);
    await expect(connect("b", await sign({ sub: "a" }))).rejects.toThrow(/Not authorized/);
    await expect(connect("a", await sign({ sub: "a" }, -60))).rejects.toThrow(/Not authorized/);
    await expect(connect("a", await sign({ sub: "a", scope: "agents:read" }))).rejects.toThrow(/Not authorized/);
    await expect(connect("a", await sign({ sub: "a", login_type: "user" }))).rejects.toThrow(/Not authorized/);
  });

  it("gives a web page without a token neither a connection nor a response", async () => {
    const url = `ws://127.0.0.1:${webSocketPort}`;
    const wsOptions = { origin: "https://page.example.com" };
    await expect(connectAsync(url, { reconnectPeriod: 0, wsOptions })).rejects.toThrow(/Not authorized/);
    const options = { username: "a", password: "", reconnectPeriod: 0, wsOptions };
    await expect(connectAsync(url, options)).rejects.toThrow(/Not authorized/);
    const page = await fetch(url.replace("ws", "http"), { headers: { Origin: wsOptions.origin } });
    expect([page.status, await page.text(), page.headers.get("Access-Control-Allow-Origin")]).toEqual([426, "", null]);
  });

  it("does not let a client forge log lines", async () => {
    const said = vi.spyOn(console, "log").mockImplementation(() => {});
    try {
      const options = { username: "a", password: "no token", clientId: "x\nforged", reconnectPeriod: 0 };
      await expect(connectAsync(`mqtt://127.0.0.1:${port}`, options)).rejects.toThrow(/Not authorized/);
      const lines = () => said.mock.calls.map(([line]) => String(line)).filter((line) => line.includes("forged"));
      await until(() => lines().length > 0);
      expect(lines()).toEqual([expect.stringContaining('{"client":"x\\nforged","error":"The token is invalid"}')]);
    } finally {
      said.mockRestore();
    }
  });

  it.each(["data", "result", "status"])("forwards the messages of an agent to its topic %s", async (level) => {
    const [subscriber, publisher] = [await service(), await agent("a")];
    const received = new Promise<string>((resolve) =>
      subscriber.on("message", (_topic, payload) => resolve(payload.toString())),
    );
    await subscriber.subscribeAsync(`agent/+/${level}`, { qos: 1 });
    await publisher.publishAsync(`agent/a/${level}`, level, { qos: 1 });
    expect(await received).toBe(level);
  });

  it.each(["agent/b/data", "agent/a/command", "agent/a/data/x", "emulator_spinup", "$SYS/x"])(
    "closes the connection of an agent that publishes to %s",
    async (topic) => {
      const publisher = await agent("a");
      const end = closed(publisher);
      publisher.publish(topic, "x", { qos: 1 });
      expect(await end).toBe("closed");
    },
  );

  it("lets an agent subscribe to its own commands only", async () => {
    const subscriber = await agent("a");
    expect(await subscriber.subscribeAsync("agent/a/command", { qos: 1 })).toMatchObject([{ qos: 1 }]);
    for (const filter of ["#", "agent/+/command", "agent/b/command", "agent/a/data", "$SYS/#"]) {
      await expect(subscriber.subscribeAsync(filter, { qos: 1 }), filter).rejects.toThrow();
    }
  });

  it("gives the events of a subscription to its account only", async () => {
    const url = `mqtt://127.0.0.1:${port}`;
    const userToken = (name: string) => sign({ sub: name, login_type: "user", scope: "agents:read", ver: 1 });
    const appToken = (name: string, scope: string) => sign({ sub: name, login_type: "third_party_app", scope, ver: 1 });
    const [owner, stranger] = ["me@example.com", "you@example.com"];
    const [mine, other] = [
      await connect(owner, await userToken(owner)),
      await connect(stranger, await userToken(stranger)),
    ];
    const everything = await connect("reader", await appToken("reader", "broker:use agents:read"));
    const limited = await connect("limited", await appToken("limited", "agents:read"));
    const seen: string[] = [];
    for (const [name, client] of Object.entries({ mine, other, everything, limited }))
      client.on("message", (topic) => seen.push(`${name} ${topic}`));
    await mine.subscribeAsync(`event/${owner}/#`, { qos: 1 });
    await everything.subscribeAsync("#", { qos: 1 });
    await limited.subscribeAsync("event/limited/+", { qos: 1 });
    for (const client of [other, limited])
      for (const filter of ["#", "event/#", `event/${owner}/1`, "event/+/1", "agent/a/data", "$share/x/event/#"])
        await expect(client.subscribeAsync(filter, { qos: 1 }), filter).rejects.toThrow();
    await expect(everything.subscribeAsync(`event/${owner}/1`, { qos: 1 })).rejects.toThrow();
    const controller = await connect("notifier", await issuer.signForApp("notifier"));
    await controller.publishAsync(`event/${owner}/1`, "{}", { qos: 1 });
    await controller.publishAsync("event/limited/2", "{}", { qos: 1 });
    await controller.publishAsync("agent/a/command", "{}", { qos: 1 });
    await until(() => seen.length >= 3);
    expect(seen.toSorted()).toEqual(["everything agent/a/command", "limited event/limited/2", `mine event/${owner}/1`]);
    for (const client of [mine, everything]) {
      const end = closed(client);
      client.publish(`event/${owner}/1`, "forged", { qos: 1 });
      expect(await end).toBe("closed");
    }
    const persistent = { username: owner, password: await userToken(owner), clientId: "x", clean: false };
    await expect(connectAsync(url, { ...persistent, reconnectPeriod: 0 })).rejects.toThrow(/Not authorized/);
  });

  it("queues no forbidden message for an agent that subscribes to an allowed and a forbidden topic at once", async () => {
    const options = { username: "a", clientId: "curious", clean: false, reconnectPeriod: 0 };
    const url = `mqtt://127.0.0.1:${port}`;
    const subscriber = await connectAsync(url, { ...options, password: await sign({ sub: "a" }) });
    clients.push(subscriber.on("error", () => {}));
    await subscriber.subscribeAsync(["agent/a/command", "#"], { qos: 1 }).catch(() => {});
    await subscriber.endAsync();
    const publisher = await service();
    await publisher.publishAsync("emulator_spinup", "with passwords", { qos: 1 });
    await (await agent("b")).publishAsync("agent/b/data", "of another", { qos: 1 });
    await publisher.publishAsync("agent/a/command", "its own", { qos: 1 });
    expect(await queued({ ...options, password: await sign({ sub: "a" }) }, "its own")).toEqual(["its own"]);
  });

  it("does not give the session of a client to another one with the same client id", async () => {
    const options = { username: "bridge", clientId: "bridge-1", clean: false, reconnectPeriod: 0 };
    const password = await issuer.signForApp("bridge");
    const subscriber = await connectAsync(`mqtt://127.0.0.1:${port}`, { ...options, password });
    await subscriber.subscribeAsync("agent/+/data", { qos: 1 });
    const thief = { ...options, username: "a", password: await sign({ sub: "a" }) };
    await connectAsync(`mqtt://127.0.0.1:${port}`, thief).then((client) => client.endAsync());
    expect(subscriber.connected).toBe(true);
    await subscriber.endAsync();
    await (await agent("b")).publishAsync("agent/b/data", "for the bridge", { qos: 1 });
    for (const clean of [false, true]) {
      await connectAsync(`mqtt://127.0.0.1:${port}`, { ...thief, clean }).then((client) => client.endAsync());
    }
    expect(await queued({ ...options, password }, "for the bridge")).toEqual(["for the bridge"]);
  });

  describe("persistent sessions of an agent", () => {
    const sessionOf = async (name: string, clientId: string): Promise<IClientOptions> => ({
      ...{ username: name, password: await sign({ sub: name }), clientId, clean: false, reconnectPeriod: 0 },
    });
    const isPresent = (options: IClientOptions): Promise<boolean> =>
      new Promise((resolve) => {
        const client = connectNow(`mqtt://127.0.0.1:${port}`, options);
        clients.push(client);
        client.once("connect", ({ sessionPresent }) => resolve(sessionPresent));
      });
    /** Subscribes to the agent's commands in a session, and leaves. */
    const leave = async (name: string, clientId: string): Promise<void> => {
      const client = await connectAsync(`mqtt://127.0.0.1:${port}`, await sessionOf(name, clientId));
      await client.subscribeAsync(`agent/${name}/command`, { qos: 1 });
      await client.endAsync();
    };

    it("are at most four: the one that was unused for longest is removed", async () => {
      for (const n of [1, 2, 3, 4, 5]) await leave("many", `session-${n}`);
      const publisher = await service();
      await publisher.publishAsync("agent/many/command", "last", { qos: 1 });
      const received: string[][] = [];
      for (const n of [2, 3, 4, 5]) received.push(await queued(await sessionOf("many", `session-${n}`), "last"));
      expect(received).toEqual(Array(4).fill(["last"]));
      expect(await isPresent(await sessionOf("many", "session-1"))).toBe(false);
    });

    it("keep the newest hundred messages", async () => {
      await leave("busy", "session");
      const publisher = await service();
      for (let n = 1; n <= 150; n++) await publisher.publishAsync("agent/busy/command", String(n), { qos: 1 });
      const received = await queued(await sessionOf("busy", "session"), "150");
      expect(received.length).toBeLessThanOrEqual(100);
      expect(received.length).toBeGreaterThanOrEqual(90);
      expect(received).toEqual(Array.from({ length: received.length }, (_, i) => String(151 - received.length + i)));
    });
  });

  it("publishes the last will of an agent to its own topic, and rejects one for another topic", async () => {
    const willing = async (topic: string) => {
      const will = { topic, payload: Buffer.from("offline"), qos: 1 } as const;
      const options = { username: "a", password: await sign({ sub: "a" }), reconnectPeriod: 0, will };
      return await connectAsync(`mqtt://127.0.0.1:${port}`, options);
    };
    await expect(willing("agent/b/status")).rejects.toThrow(/Not authorized/);
    const subscriber = await service();
    const received = new Promise<string>((resolve) => subscriber.on("message", (topic) => resolve(topic)));
    await subscriber.subscribeAsync("agent/+/status", { qos: 1 });
    (await willing("agent/a/status")).stream.destroy();
    expect(await received).toBe("agent/a/status");
  });

  it("keeps messages for a disconnected subscriber across a restart", async () => {
    const password = await issuer.signForApp("bridge");
    const options = { username: "bridge", password, clientId: "keeper", clean: false, reconnectPeriod: 0 };
    const url = `mqtt://127.0.0.1:${port}`;
    const subscriber = await connectAsync(url, options);
    await subscriber.subscribeAsync("agent/+/data", { qos: 1 });
    await subscriber.endAsync();
    await (await agent("a")).publishAsync("agent/a/data", "kept", { qos: 1 });
    const pid = supervisor.pids.broker ?? 0;
    process.kill(pid, "SIGTERM");
    await until(() => supervisor.pids.broker !== pid);
    // The handler is set before connecting, because queued messages arrive right after the connection is accepted.
    const again = connectNow(url, { ...options, reconnectPeriod: 200 });
    clients.push(again);
    again.on("error", () => {});
    const received = new Promise<string>((resolve) =>
      again.on("message", (_topic, payload) => resolve(payload.toString())),
    );
    expect(await received).toBe("kept");
  });

  it("delivers a message at once even if a later one was delivered before it", async () => {
    const COUNT = 500;
    const password = await issuer.signForApp("bridge");
    const url = `mqtt://127.0.0.1:${port}`;
    const subscriber = await connectAsync(url, { username: "bridge", password, clientId: "prompt", clean: false });
    clients.push(subscriber);
    const received = new Set<string>();
    subscriber.on("message", (_topic, payload) => received.add(payload.toString()));
    await subscriber.subscribeAsync("agent/+/status", { qos: 1 });
    // Messages that are stored take longer than those that are not.
    for (const [qos, name] of (["a", "b", "c"] as const).entries()) {
      const publisher = await agent(name);
      for (let n = 0; n < COUNT; n++) {
        publisher.publish(`agent/${name}/status`, `${name}${n}`, { qos: qos as 0 | 1 | 2 });
      }
    }
    await until(() => received.size === 3 * COUNT, 5_000).catch(() => {});
    expect(received.size).toBe(3 * COUNT);
  });

  it.each([
    ["TCP", () => `mqtt://127.0.0.1:${port}`],
    ["WebSocket", () => `ws://127.0.0.1:${webSocketPort}`],
  ])("accepts packets of up to 1 MiB over %s", async (_name, url) => {
    const options = { username: "a", password: await sign({ sub: "a" }), reconnectPeriod: 0 };
    const publisher = await connectAsync(url(), options);
    clients.push(publisher.on("error", () => {}));
    await publisher.publishAsync("agent/a/data", Buffer.alloc(1_000_000), { qos: 1 });
    const end = closed(publisher);
    publisher.publish("agent/a/data", Buffer.alloc(1024 * 1024), { qos: 1 });
    expect(await end).toBe("closed");
  });

  it("closes the connection of a client that announces a long packet before it logs in", async () => {
    const socket = connectSocket(port, "127.0.0.1");
    // A CONNECT that announces 256 MiB.
    socket.write(Buffer.from([0x10, 0xff, 0xff, 0xff, 0x7f]));
    await once(socket.resume(), "close");
  });

  it("closes a connection when its token expires", async () => {
    const client = await connect("a", await sign({ sub: "a" }, 1));
    const startedMs = Date.now();
    expect(await closed(client)).toBe("closed");
    expect(Date.now() - startedMs).toBeLessThan(3_000);
  });
});
