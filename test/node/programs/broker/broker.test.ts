import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { createServer, type Server } from "node:http";
import { connect as connectSocket, createServer as createTcpServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { exportJWK, generateKeyPair, SignJWT } from "jose";
import { connectAsync, connect as connectNow, type IClientOptions, type MqttClient } from "mqtt";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { canMount, LimitedDisk } from "../../../../scripts/harness/faults/limited-disk.ts";
import { until } from "../../../../scripts/harness/product.ts";
import { createSite } from "../../../../src/emulator/models/site.ts";
import { subscribe } from "../../../../src/programs/bridge/subscriber.ts";
import { BrokerLink } from "../../../../src/programs/emulator/broker-link.ts";
import { EmulatorClient } from "../../../../src/programs/emulator/emulator-client.ts";
import { JobFiles } from "../../../../src/programs/emulator/job-files.ts";
import { runPart } from "../../../../src/programs/emulator/part-runner.ts";
import { brokerComponent } from "../../../../src/programs/stack/components/broker-process.ts";
import { anyFreePort } from "../../../../src/programs/stack/ports.ts";
import { Supervisor } from "../../../../src/programs/stack/supervisor.ts";

const ISSUER = "controller";

describe("the broker", () => {
  const supervisor = new Supervisor();
  const folder = mkdtempSync(join(tmpdir(), "broker-"));
  let keyServer: Server;
  let port: number;
  let webSocketPort: number;
  let jwksUrl: string;
  let sign: (claims: object, seconds?: number) => Promise<string>;
  const clients: MqttClient[] = [];
  const children: ChildProcess[] = [];

  beforeAll(async () => {
    const { publicKey, privateKey } = await generateKeyPair("ES256");
    const jwks = { keys: [{ ...(await exportJWK(publicKey)), kid: "a", alg: "ES256" }] };
    keyServer = createServer((_request, response) => response.end(JSON.stringify(jwks)));
    await new Promise<void>((resolve) => keyServer.listen(0, "127.0.0.1", resolve));
    sign = (claims, seconds = 60) =>
      new SignJWT({ login_type: "agent", scope: "broker:use", ver: 0, ...claims })
        .setProtectedHeader({ alg: "ES256", kid: "a" })
        .setIssuer(ISSUER)
        .setAudience(ISSUER)
        .setExpirationTime(Math.ceil(Date.now() / 1000) + seconds)
        .sign(privateKey);
    const [tcpPort, wsPort] = [await anyFreePort(), await anyFreePort()];
    port = tcpPort;
    webSocketPort = wsPort;
    jwksUrl = `http://127.0.0.1:${(keyServer.address() as { port: number }).port}/`;
    await supervisor.start(
      brokerComponent({ dataDir: folder, host: "127.0.0.1", tcpPort, wsPort, jwksUrl, issuer: ISSUER }),
    );
  });

  afterAll(async () => {
    await Promise.all(clients.map((client) => client.endAsync(true)));
    for (const child of children) child.kill("SIGKILL");
    await supervisor.stop();
    keyServer.close();
    rmSync(folder, { recursive: true, force: true });
  });

  const connect = async (username: string, password: string): Promise<MqttClient> => {
    const client = await connectAsync(`mqtt://127.0.0.1:${port}`, { username, password, reconnectPeriod: 0 });
    client.on("error", () => {});
    clients.push(client);
    return client;
  };
  const agent = async (name: string) => await connect(name, await sign({ sub: name }));
  const service = async () => await connect("bridge", await sign({ sub: "bridge", login_type: "third_party_app" }));
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
    const password = await sign({ sub: "bridge", login_type: "third_party_app" });
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
    const password = await sign({ sub: "bridge", login_type: "third_party_app" });
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
    const password = await sign({ sub: "bridge", login_type: "third_party_app" });
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

  it("loses no acknowledged message when it is killed", async () => {
    const KILLS = 3;
    const PUBLISHERS = 4;
    const BURST = 100;
    const [tcpPort, wsPort] = [await anyFreePort(), await anyFreePort()];
    const url = `mqtt://127.0.0.1:${tcpPort}`;
    const token = await sign({ sub: "bridge", login_type: "third_party_app" });
    const start = async () => {
      const dataDir = join(folder, "killed");
      const { command, args, ready } = brokerComponent({
        dataDir,
        host: "127.0.0.1",
        tcpPort,
        wsPort,
        jwksUrl,
        issuer: ISSUER,
      });
      const child = spawn(command, args, { stdio: "inherit" });
      children.push(child);
      await until(() => ready([]));
      return child;
    };
    // Acknowledges no message, so that in the end the broker has queued every one.
    const receive = (onMessage: (payload: string) => void, signal = new AbortController().signal) =>
      subscribe({
        url,
        username: "bridge",
        password: token,
        clientId: "queued",
        topics: ["agent/+/data"],
        signal,
        drained: async () => {},
        onMessage: ({ payload }) => void onMessage(payload.toString()),
      });
    const connectPublisher = async (i: number) => {
      const options = { username: `a${i}`, password: await sign({ sub: `a${i}` }), reconnectPeriod: 0 };
      const publisher = await connectAsync(url, options);
      clients.push(publisher.on("error", () => {}));
      return publisher;
    };
    const acknowledged = new Set<string>();

    for (let kill = 0; kill < KILLS; kill++) {
      const child = await start();
      if (kill === 0) {
        const options = { username: "bridge", password: token, clientId: "queued", clean: false, reconnectPeriod: 0 };
        const subscriber = await connectAsync(url, options);
        await subscriber.subscribeAsync("agent/+/data", { qos: 1 });
        await subscriber.endAsync();
      }
      // The subscriber is connected at every other kill.
      let receiving = Promise.resolve();
      if (kill % 2 === 1) {
        await new Promise<void>((resolve) => {
          receiving = receive(() => resolve()).catch(() => {});
        });
      }
      const publishers = await Promise.all(Array.from({ length: PUBLISHERS }, (_, i) => connectPublisher(i)));
      let count = 0;
      for (const [i, publisher] of publishers.entries()) {
        for (let n = 0; n < BURST; n++) {
          const payload = `${kill}/${i}/${n}`;
          publisher.publish(`agent/a${i}/data`, payload, { qos: 1 }, (error) => {
            if (error) return;
            acknowledged.add(payload);
            // Most of the burst is in flight at this time.
            if (++count === BURST / 4) child.kill("SIGKILL");
          });
        }
      }
      await Promise.all([once(child, "exit"), receiving]);
    }

    await start();
    const stop = new AbortController();
    const received = new Set<string>();
    const receiving = receive((payload) => received.add(payload), stop.signal);
    const missing = () => [...acknowledged].filter((payload) => !received.has(payload));
    await until(() => missing().length === 0, 5_000).catch(() => {});
    expect(missing()).toHaveLength(0);
    stop.abort();
    await receiving;
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

  it.runIf(canMount())("accepts no connections while its disk is full, and loses no acknowledged message", async () => {
    const disk = LimitedDisk.mount(join(folder, "small", "broker"));
    const [tcpPort, wsPort] = [await anyFreePort(), await anyFreePort()];
    const url = `mqtt://127.0.0.1:${tcpPort}`;
    const component = brokerComponent({
      dataDir: join(folder, "small"),
      host: "127.0.0.1",
      tcpPort,
      wsPort,
      jwksUrl,
      issuer: ISSUER,
    });
    try {
      await supervisor.start({ ...component, name: "small broker" });
      const session = {
        clientId: "subscriber",
        clean: false,
        username: "bridge",
        password: await sign({ sub: "bridge", login_type: "third_party_app" }),
      };
      const subscriber = await connectAsync(url, session);
      await subscriber.subscribeAsync("agent/+/data", { qos: 1 });
      await subscriber.endAsync();

      const publisher = connectNow(url, { username: "a", password: await sign({ sub: "a" }), reconnectPeriod: 50 });
      clients.push(publisher);
      publisher.on("error", () => {});
      await new Promise((resolve) => publisher.once("connect", resolve));
      disk.fill();
      let acknowledged = 0;
      const messages = Array.from({ length: 50 }, (_, n) => `${n} ${"x".repeat(1_000)}`);
      const publishing = messages.map(async (message) => {
        await publisher.publishAsync("agent/a/data", message, { qos: 1 });
        acknowledged++;
      });
      await closed(publisher);
      await until(async () => !(await component.ready([])));
      // A few messages fit into the remaining space.
      expect(acknowledged).toBeLessThan(messages.length);
      disk.free();
      await Promise.all(publishing);

      process.kill(supervisor.pids["small broker"] ?? 0, "SIGKILL");
      const received = new Set<string>();
      const again = connectNow(url, { ...session, reconnectPeriod: 50 });
      clients.push(again);
      again.on("error", () => {});
      again.on("message", (_topic, payload) => received.add(payload.toString()));
      await until(() => received.size === messages.length);
    } finally {
      disk.unmount();
    }
  });

  it("accepts an emulator that retries until the broker has the controller's keys", async () => {
    const keys = await (await fetch(jwksUrl)).text();
    let rejections = 0;
    let hasKeys = false;
    const token = await sign({ sub: "emulator", login_type: "third_party_app" });
    const service = createServer(({ url }, response) => {
      if (url?.startsWith("/api/v1/token/")) response.end(JSON.stringify({ access_token: token, expires_in: 60 }));
      else if (hasKeys) response.end(keys);
      else response.writeHead(503).end(String(++rejections));
    });
    await new Promise<void>((resolve) => service.listen(0, "127.0.0.1", resolve));
    const url = `http://127.0.0.1:${(service.address() as { port: number }).port}`;
    const [tcpPort, wsPort] = [await anyFreePort(), await anyFreePort()];
    const component = brokerComponent({
      dataDir: join(folder, "early"),
      host: "127.0.0.1",
      tcpPort,
      wsPort,
      issuer: ISSUER,
      jwksUrl: `${url}/keys`,
    });
    await supervisor.start({ ...component, name: "early broker" });
    const link = new BrokerLink({
      url: `mqtt://127.0.0.1:${tcpPort}`,
      clientId: "emulator",
      controller: new EmulatorClient({ url, appName: "emulator", apiKey: "no secret" }),
      signal: new AbortController().signal,
    });
    try {
      const connected = link.connect();
      await until(() => rejections > 0);
      hasKeys = true;
      await connected;
    } finally {
      await link.close();
      service.close();
      service.closeAllConnections();
    }
  });

  it("loses an emulator to a new connection if it does not acknowledge a message", async () => {
    const token = await sign({ sub: "emulator", login_type: "third_party_app" });
    const service = createServer((_request, response) =>
      response.end(JSON.stringify({ access_token: token, expires_in: 60 })),
    );
    let connections = 0;
    // Drops the acknowledgements of the broker on the first connection.
    const proxy = createTcpServer((client) => {
      const number = ++connections;
      const broker = connectSocket(port, "127.0.0.1");
      client.pipe(broker);
      broker.on("data", (bytes) => {
        if (number > 1 || bytes[0] !== 0x40) client.write(bytes);
      });
      for (const [one, other] of [
        [client, broker],
        [broker, client],
      ] as const)
        one.on("error", () => {}).on("close", () => other.destroy());
    });
    for (const server of [service, proxy])
      await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", () => resolve()));
    const portOf = (server: { address(): unknown }) => (server.address() as { port: number }).port;
    const link = new BrokerLink({
      url: `mqtt://127.0.0.1:${portOf(proxy)}`,
      clientId: "emulator",
      controller: new EmulatorClient({
        url: `http://127.0.0.1:${portOf(service)}`,
        appName: "emulator",
        apiKey: "no secret",
      }),
      signal: new AbortController().signal,
      timeoutMs: 400,
    });
    try {
      await link.connect();
      link.publish("agent/a/data", {});
      let received = "";
      link.handleCommands("a", (payload) => {
        received = payload.toString();
      });
      await until(() => connections > 1);
      const publisher = await connect("bridge", await sign({ sub: "bridge", login_type: "third_party_app" }));
      await until(async () => {
        await publisher.publishAsync("agent/a/command", "reboot", { qos: 1 });
        return received === "reboot";
      });
    } finally {
      await link.close();
      service.close();
      service.closeAllConnections();
      proxy.close();
    }
  });

  it("delivers commands to a part of an earlier run before the controller accepts its claim", async () => {
    const token = await sign({ sub: "emulator", login_type: "third_party_app" });
    // Responds to logins, but not to reports.
    const server = createServer((request, response) => {
      if (request.url?.includes("/token/")) response.end(JSON.stringify({ access_token: token, expires_in: 60 }));
    });
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", () => resolve()));
    const url = `http://127.0.0.1:${(server.address() as { port: number }).port}`;
    const controller = new EmulatorClient({ url, appName: "emulator", apiKey: "no secret" });
    const stop = new AbortController();
    const { signal } = stop;
    const link = new BrokerLink({ url: `mqtt://127.0.0.1:${port}`, clientId: "emulator", controller, signal });
    const agent = { ap_id: "begun", password: "no secret", latitude: 51, longitude: -2 };
    const spec = { access_point_type: "WiFi" as const, num_devices: 1, duration: 60, agents: [agent] };
    const part = { job_number: "00000001", part: 1, parts: 1, emulators: [spec] };
    const accessPoints = [{ apId: "begun", technology: "WiFi" as const, numDevices: 1 }];
    const files = new JobFiles(join(folder, "begun"));
    files.save(part, { startedMs: Date.now(), samples: 1, sites: [createSite({ longitudeDeg: -2, accessPoints }, 1)] });
    const running = runPart({ part, emulatorId: "e", controller, link, files, signal });
    try {
      await link.connect();
      const publisher = await connect("bridge", await sign({ sub: "bridge", login_type: "third_party_app" }));
      const results: unknown[] = [];
      publisher.on("message", (_topic, payload) => results.push(JSON.parse(payload.toString())));
      await publisher.subscribeAsync("agent/begun/result", { qos: 1 });
      const expires_at = new Date(Date.now() + 60_000).toISOString();
      const command = { job_number: "00000002", command: "power_off", expires_at };
      await publisher.publishAsync("agent/begun/command", JSON.stringify(command), { qos: 1 });
      await until(() => results.length > 0);
      expect(results).toMatchObject([{ job_number: "00000002", status: "done" }]);
    } finally {
      stop.abort();
      server.close();
      server.closeAllConnections();
      await running;
      await link.close();
    }
  });
});
