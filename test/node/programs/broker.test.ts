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
import { canMount, LimitedDisk } from "../../../scripts/harness/faults/limited-disk.ts";
import { until } from "../../../scripts/harness/product.ts";
import { createSite } from "../../../src/emulator/models/site.ts";
import { listen } from "../../../src/programs/bridge/subscriber.ts";
import { BrokerLink } from "../../../src/programs/emulator/broker-link.ts";
import { EmulatorService } from "../../../src/programs/emulator/emulator-client.ts";
import { JobFiles } from "../../../src/programs/emulator/job-files.ts";
import { runPart } from "../../../src/programs/emulator/part-runner.ts";
import { brokerComponent } from "../../../src/programs/stack/components/broker-process.ts";
import { anyFreePort } from "../../../src/programs/stack/ports.ts";
import { Supervisor } from "../../../src/programs/stack/supervisor.ts";

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

  /** What the broker has kept for a client, up to the message that was sent last. */
  const kept = async (options: IClientOptions, last: string): Promise<string[]> => {
    const heard: string[] = [];
    const client = connectNow(`mqtt://127.0.0.1:${port}`, options);
    clients.push(client.on("error", () => {}));
    client.on("message", (_topic, payload) => heard.push(payload.toString()));
    await until(() => heard.includes(last), 3_000).catch(() => {});
    return heard;
  };

  it("lets nobody in without a good token of one's own", async () => {
    await expect(connectAsync(`mqtt://127.0.0.1:${port}`, { reconnectPeriod: 0 })).rejects.toThrow(/Not authorized/);
    await expect(connect("a", "no token")).rejects.toThrow(/Not authorized/);
    await expect(connect("b", await sign({ sub: "a" }))).rejects.toThrow(/Not authorized/);
    await expect(connect("a", await sign({ sub: "a" }, -60))).rejects.toThrow(/Not authorized/);
    await expect(connect("a", await sign({ sub: "a", scope: "agents:read" }))).rejects.toThrow(/Not authorized/);
    await expect(connect("a", await sign({ sub: "a", login_type: "user" }))).rejects.toThrow(/Not authorized/);
  });

  it("gives a web page that has no token neither a connection nor an answer", async () => {
    const url = `ws://127.0.0.1:${webSocketPort}`;
    const wsOptions = { origin: "https://page.example.com" };
    await expect(connectAsync(url, { reconnectPeriod: 0, wsOptions })).rejects.toThrow(/Not authorized/);
    const options = { username: "a", password: "", reconnectPeriod: 0, wsOptions };
    await expect(connectAsync(url, options)).rejects.toThrow(/Not authorized/);
    const page = await fetch(url.replace("ws", "http"), { headers: { Origin: wsOptions.origin } });
    expect([page.status, await page.text(), page.headers.get("Access-Control-Allow-Origin")]).toEqual([426, "", null]);
  });

  it("does not let a client write lines of its own into the log", async () => {
    const said = vi.spyOn(console, "log").mockImplementation(() => {});
    try {
      const options = { username: "a", password: "no token", clientId: "x\nforged", reconnectPeriod: 0 };
      await expect(connectAsync(`mqtt://127.0.0.1:${port}`, options)).rejects.toThrow(/Not authorized/);
      const lines = () => said.mock.calls.map(([line]) => String(line)).filter((line) => line.includes("forged"));
      await until(() => lines().length > 0);
      expect(lines()).toEqual([expect.stringContaining('{"client":"x\\nforged","error":"The token is not good"}')]);
    } finally {
      said.mockRestore();
    }
  });

  it.each(["data", "result", "status"])("passes on what an agent says to its topic %s", async (level) => {
    const [listener, speaker] = [await service(), await agent("a")];
    const heard = new Promise<string>((resolve) =>
      listener.on("message", (_topic, payload) => resolve(payload.toString())),
    );
    await listener.subscribeAsync(`agent/+/${level}`, { qos: 1 });
    await speaker.publishAsync(`agent/a/${level}`, level, { qos: 1 });
    expect(await heard).toBe(level);
  });

  it.each(["agent/b/data", "agent/a/command", "agent/a/data/x", "emulator_spinup", "$SYS/x"])(
    "closes the connection of an agent that speaks to %s",
    async (topic) => {
      const speaker = await agent("a");
      const end = closed(speaker);
      speaker.publish(topic, "x", { qos: 1 });
      expect(await end).toBe("closed");
    },
  );

  it("lets an agent hear its own commands and nothing else", async () => {
    const listener = await agent("a");
    expect(await listener.subscribeAsync("agent/a/command", { qos: 1 })).toMatchObject([{ qos: 1 }]);
    for (const filter of ["#", "agent/+/command", "agent/b/command", "agent/a/data", "$SYS/#"]) {
      await expect(listener.subscribeAsync(filter, { qos: 1 }), filter).rejects.toThrow();
    }
  });

  it("keeps nothing for an agent of what it may not hear, also where it asks for both at once", async () => {
    const options = { username: "a", clientId: "curious", clean: false, reconnectPeriod: 0 };
    const url = `mqtt://127.0.0.1:${port}`;
    const asking = await connectAsync(url, { ...options, password: await sign({ sub: "a" }) });
    clients.push(asking.on("error", () => {}));
    await asking.subscribeAsync(["agent/a/command", "#"], { qos: 1 }).catch(() => {});
    await asking.endAsync();
    const speaker = await service();
    await speaker.publishAsync("emulator_spinup", "with passwords", { qos: 1 });
    await (await agent("b")).publishAsync("agent/b/data", "of another", { qos: 1 });
    await speaker.publishAsync("agent/a/command", "its own", { qos: 1 });
    expect(await kept({ ...options, password: await sign({ sub: "a" }) }, "its own")).toEqual(["its own"]);
  });

  it("does not give one client's session to another that comes under its client id", async () => {
    const options = { username: "bridge", clientId: "bridge-1", clean: false, reconnectPeriod: 0 };
    const password = await sign({ sub: "bridge", login_type: "third_party_app" });
    const listener = await connectAsync(`mqtt://127.0.0.1:${port}`, { ...options, password });
    await listener.subscribeAsync("agent/+/data", { qos: 1 });
    const thief = { ...options, username: "a", password: await sign({ sub: "a" }) };
    await connectAsync(`mqtt://127.0.0.1:${port}`, thief).then((client) => client.endAsync());
    expect(listener.connected).toBe(true);
    await listener.endAsync();
    await (await agent("b")).publishAsync("agent/b/data", "for the bridge", { qos: 1 });
    for (const clean of [false, true]) {
      await connectAsync(`mqtt://127.0.0.1:${port}`, { ...thief, clean }).then((client) => client.endAsync());
    }
    expect(await kept({ ...options, password }, "for the bridge")).toEqual(["for the bridge"]);
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

    it("are four at the most: the one that was left first goes", async () => {
      for (const n of [1, 2, 3, 4, 5]) await leave("many", `session-${n}`);
      const speaker = await service();
      await speaker.publishAsync("agent/many/command", "last", { qos: 1 });
      const heard: string[][] = [];
      for (const n of [2, 3, 4, 5]) heard.push(await kept(await sessionOf("many", `session-${n}`), "last"));
      expect(heard).toEqual(Array(4).fill(["last"]));
      expect(await isPresent(await sessionOf("many", "session-1"))).toBe(false);
    });

    it("keep the newest hundred messages", async () => {
      await leave("busy", "session");
      const speaker = await service();
      for (let n = 1; n <= 150; n++) await speaker.publishAsync("agent/busy/command", String(n), { qos: 1 });
      const heard = await kept(await sessionOf("busy", "session"), "150");
      expect(heard.length).toBeLessThanOrEqual(100);
      expect(heard.length).toBeGreaterThanOrEqual(90);
      expect(heard).toEqual(Array.from({ length: heard.length }, (_, i) => String(151 - heard.length + i)));
    });
  });

  it("publishes an agent's will to its own topic, and takes none for another", async () => {
    const willing = async (topic: string) => {
      const will = { topic, payload: Buffer.from("offline"), qos: 1 } as const;
      const options = { username: "a", password: await sign({ sub: "a" }), reconnectPeriod: 0, will };
      return await connectAsync(`mqtt://127.0.0.1:${port}`, options);
    };
    await expect(willing("agent/b/status")).rejects.toThrow(/Not authorized/);
    const listener = await service();
    const heard = new Promise<string>((resolve) => listener.on("message", (topic) => resolve(topic)));
    await listener.subscribeAsync("agent/+/status", { qos: 1 });
    (await willing("agent/a/status")).stream.destroy();
    expect(await heard).toBe("agent/a/status");
  });

  it("keeps what was said for a listener that is away, across its own end", async () => {
    const password = await sign({ sub: "bridge", login_type: "third_party_app" });
    const options = { username: "bridge", password, clientId: "keeper", clean: false, reconnectPeriod: 0 };
    const url = `mqtt://127.0.0.1:${port}`;
    const listener = await connectAsync(url, options);
    await listener.subscribeAsync("agent/+/data", { qos: 1 });
    await listener.endAsync();
    await (await agent("a")).publishAsync("agent/a/data", "kept", { qos: 1 });
    const pid = supervisor.pids.broker ?? 0;
    process.kill(pid, "SIGTERM");
    await until(() => supervisor.pids.broker !== pid);
    // Its ears open before it connects: what was kept comes right behind the broker's greeting.
    const again = connectNow(url, { ...options, reconnectPeriod: 200 });
    clients.push(again);
    again.on("error", () => {});
    const heard = new Promise<string>((resolve) =>
      again.on("message", (_topic, payload) => resolve(payload.toString())),
    );
    expect(await heard).toBe("kept");
  });

  it("delivers at once also what another message has overtaken", async () => {
    const COUNT = 500;
    const password = await sign({ sub: "bridge", login_type: "third_party_app" });
    const url = `mqtt://127.0.0.1:${port}`;
    const listener = await connectAsync(url, { username: "bridge", password, clientId: "prompt", clean: false });
    clients.push(listener);
    const heard = new Set<string>();
    listener.on("message", (_topic, payload) => heard.add(payload.toString()));
    await listener.subscribeAsync("agent/+/status", { qos: 1 });
    // What is stored takes longer than what is not.
    for (const [qos, name] of (["a", "b", "c"] as const).entries()) {
      const speaker = await agent(name);
      for (let n = 0; n < COUNT; n++) {
        speaker.publish(`agent/${name}/status`, `${name}${n}`, { qos: qos as 0 | 1 | 2 });
      }
    }
    await until(() => heard.size === 3 * COUNT, 5_000).catch(() => {});
    expect(heard.size).toBe(3 * COUNT);
  });

  it("loses nothing that it has acknowledged when it is killed", async () => {
    const KILLS = 3;
    const SPEAKERS = 4;
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
    // Takes messages and acknowledges none, so that in the end the broker owes it every one.
    const hear = (onMessage: (payload: string) => void, signal = new AbortController().signal) =>
      listen({
        ...{ url, username: "bridge", password: token, clientId: "owed", topics: ["agent/+/data"], signal },
        drained: async () => {},
        onMessage: ({ payload }) => void onMessage(payload.toString()),
      });
    const speak = async (i: number) => {
      const options = { username: `a${i}`, password: await sign({ sub: `a${i}` }), reconnectPeriod: 0 };
      const speaker = await connectAsync(url, options);
      clients.push(speaker.on("error", () => {}));
      return speaker;
    };
    const acknowledged = new Set<string>();

    for (let kill = 0; kill < KILLS; kill++) {
      const child = await start();
      if (kill === 0) {
        const options = { username: "bridge", password: token, clientId: "owed", clean: false, reconnectPeriod: 0 };
        const listener = await connectAsync(url, options);
        await listener.subscribeAsync("agent/+/data", { qos: 1 });
        await listener.endAsync();
      }
      // There for every other kill, away for the rest.
      let hearing = Promise.resolve();
      if (kill % 2 === 1) {
        await new Promise<void>((resolve) => {
          hearing = hear(() => resolve()).catch(() => {});
        });
      }
      const speakers = await Promise.all(Array.from({ length: SPEAKERS }, (_, i) => speak(i)));
      let count = 0;
      for (const [i, speaker] of speakers.entries()) {
        for (let n = 0; n < BURST; n++) {
          const payload = `${kill}/${i}/${n}`;
          speaker.publish(`agent/a${i}/data`, payload, { qos: 1 }, (error) => {
            if (error) return;
            acknowledged.add(payload);
            // While most of the burst is under way.
            if (++count === BURST / 4) child.kill("SIGKILL");
          });
        }
      }
      await Promise.all([once(child, "exit"), hearing]);
    }

    await start();
    const stop = new AbortController();
    const heard = new Set<string>();
    const hearing = hear((payload) => heard.add(payload), stop.signal);
    const missing = () => [...acknowledged].filter((payload) => !heard.has(payload));
    await until(() => missing().length === 0, 5_000).catch(() => {});
    expect(missing()).toHaveLength(0);
    stop.abort();
    await hearing;
  });

  it.each([
    ["TCP", () => `mqtt://127.0.0.1:${port}`],
    ["WebSocket", () => `ws://127.0.0.1:${webSocketPort}`],
  ])("takes packets of up to 1 MiB over %s", async (_name, url) => {
    const options = { username: "a", password: await sign({ sub: "a" }), reconnectPeriod: 0 };
    const speaker = await connectAsync(url(), options);
    clients.push(speaker.on("error", () => {}));
    await speaker.publishAsync("agent/a/data", Buffer.alloc(1_000_000), { qos: 1 });
    const end = closed(speaker);
    speaker.publish("agent/a/data", Buffer.alloc(1024 * 1024), { qos: 1 });
    expect(await end).toBe("closed");
  });

  it("waits for no long packet from a client that has not logged in", async () => {
    const socket = connectSocket(port, "127.0.0.1");
    // A CONNECT that announces 256 MiB.
    socket.write(Buffer.from([0x10, 0xff, 0xff, 0xff, 0x7f]));
    await once(socket.resume(), "close");
  });

  it("ends a connection with the token that opened it", async () => {
    const client = await connect("a", await sign({ sub: "a" }, 1));
    const startedMs = Date.now();
    expect(await closed(client)).toBe("closed");
    expect(Date.now() - startedMs).toBeLessThan(3_000);
  });

  it.runIf(canMount())(
    "shuts its doors while its disk is full, and loses nothing that it took before or afterwards",
    async () => {
      const disk = LimitedDisk.mount(join(folder, "small", "broker"));
      const [tcpPort, wsPort] = [await anyFreePort(), await anyFreePort()];
      const url = `mqtt://127.0.0.1:${tcpPort}`;
      const part = brokerComponent({
        dataDir: join(folder, "small"),
        host: "127.0.0.1",
        tcpPort,
        wsPort,
        jwksUrl,
        issuer: ISSUER,
      });
      try {
        await supervisor.start({ ...part, name: "small broker" });
        const listening = {
          clientId: "listener",
          clean: false,
          username: "bridge",
          password: await sign({ sub: "bridge", login_type: "third_party_app" }),
        };
        const subscriber = await connectAsync(url, listening);
        await subscriber.subscribeAsync("agent/+/data", { qos: 1 });
        await subscriber.endAsync();

        const speaker = connectNow(url, { username: "a", password: await sign({ sub: "a" }), reconnectPeriod: 50 });
        clients.push(speaker);
        speaker.on("error", () => {});
        await new Promise((resolve) => speaker.once("connect", resolve));
        disk.fill();
        let taken = 0;
        const messages = Array.from({ length: 50 }, (_, n) => `${n} ${"x".repeat(1_000)}`);
        const publishing = messages.map(async (message) => {
          await speaker.publishAsync("agent/a/data", message, { qos: 1 });
          taken++;
        });
        await closed(speaker);
        await until(async () => !(await part.ready([])));
        // A few fit into what was left.
        expect(taken).toBeLessThan(messages.length);
        disk.free();
        await Promise.all(publishing);

        process.kill(supervisor.pids["small broker"] ?? 0, "SIGKILL");
        const heard = new Set<string>();
        const listener = connectNow(url, { ...listening, reconnectPeriod: 50 });
        clients.push(listener);
        listener.on("error", () => {});
        listener.on("message", (_topic, payload) => heard.add(payload.toString()));
        await until(() => heard.size === messages.length);
      } finally {
        disk.unmount();
      }
    },
  );

  it("refuses an emulator that comes before the service shows its keys, which comes again until it is let in", async () => {
    const keys = await (await fetch(jwksUrl)).text();
    let refusals = 0;
    let hasKeys = false;
    const token = await sign({ sub: "emulator", login_type: "third_party_app" });
    const service = createServer(({ url }, response) => {
      if (url?.startsWith("/api/v1/token/")) response.end(JSON.stringify({ access_token: token, expires_in: 60 }));
      else if (hasKeys) response.end(keys);
      else response.writeHead(503).end(String(++refusals));
    });
    await new Promise<void>((resolve) => service.listen(0, "127.0.0.1", resolve));
    const url = `http://127.0.0.1:${(service.address() as { port: number }).port}`;
    const [tcpPort, wsPort] = [await anyFreePort(), await anyFreePort()];
    const part = brokerComponent({
      ...{ dataDir: join(folder, "early"), host: "127.0.0.1", tcpPort, wsPort, issuer: ISSUER },
      jwksUrl: `${url}/keys`,
    });
    await supervisor.start({ ...part, name: "early broker" });
    const link = new BrokerLink({
      url: `mqtt://127.0.0.1:${tcpPort}`,
      clientId: "emulator",
      service: new EmulatorService({ url, appName: "emulator", apiKey: "no secret" }),
      signal: new AbortController().signal,
    });
    try {
      const connected = link.connect();
      await until(() => refusals > 0);
      hasKeys = true;
      await connected;
    } finally {
      await link.close();
      service.close();
      service.closeAllConnections();
    }
  });

  it("is left by an emulator to which it owes an acknowledgement, for another connection", async () => {
    const token = await sign({ sub: "emulator", login_type: "third_party_app" });
    const service = createServer((_request, response) =>
      response.end(JSON.stringify({ access_token: token, expires_in: 60 })),
    );
    let connections = 0;
    // Swallows what the broker has to say behind its greeting on the first connection.
    const line = createTcpServer((client) => {
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
    for (const server of [service, line])
      await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", () => resolve()));
    const portOf = (server: { address(): unknown }) => (server.address() as { port: number }).port;
    const link = new BrokerLink({
      url: `mqtt://127.0.0.1:${portOf(line)}`,
      clientId: "emulator",
      service: new EmulatorService({
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
      let heard = "";
      link.listen("a", (payload) => {
        heard = payload.toString();
      });
      await until(() => connections > 1);
      const speaker = await connect("bridge", await sign({ sub: "bridge", login_type: "third_party_app" }));
      await until(async () => {
        await speaker.publishAsync("agent/a/command", "reboot", { qos: 1 });
        return heard === "reboot";
      });
    } finally {
      await link.close();
      service.close();
      service.closeAllConnections();
      line.close();
    }
  });

  it("brings commands to a part that was begun while the service is still asked about it", async () => {
    const token = await sign({ sub: "emulator", login_type: "third_party_app" });
    // Answers logins, and nothing that is said of a job.
    const server = createServer((request, response) => {
      if (request.url?.includes("/token/")) response.end(JSON.stringify({ access_token: token, expires_in: 60 }));
    });
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", () => resolve()));
    const url = `http://127.0.0.1:${(server.address() as { port: number }).port}`;
    const service = new EmulatorService({ url, appName: "emulator", apiKey: "no secret" });
    const stop = new AbortController();
    const { signal } = stop;
    const link = new BrokerLink({ url: `mqtt://127.0.0.1:${port}`, clientId: "emulator", service, signal });
    const agent = { ap_id: "begun", password: "no secret", latitude: 51, longitude: -2 };
    const spec = { access_point_type: "WiFi" as const, num_devices: 1, duration: 60, agents: [agent] };
    const part = { job_number: "00000001", part: 1, parts: 1, emulators: [spec] };
    const accessPoints = [{ apId: "begun", technology: "WiFi" as const, numDevices: 1 }];
    const files = new JobFiles(join(folder, "begun"));
    files.save(part, { startedMs: Date.now(), samples: 1, sites: [createSite({ longitudeDeg: -2, accessPoints }, 1)] });
    const running = runPart({ part, id: "e", service, link, files, signal });
    try {
      await link.connect();
      const speaker = await connect("bridge", await sign({ sub: "bridge", login_type: "third_party_app" }));
      const answers: unknown[] = [];
      speaker.on("message", (_topic, payload) => answers.push(JSON.parse(payload.toString())));
      await speaker.subscribeAsync("agent/begun/result", { qos: 1 });
      const expires_at = new Date(Date.now() + 60_000).toISOString();
      const command = { job_number: "00000002", command: "power_off", expires_at };
      await speaker.publishAsync("agent/begun/command", JSON.stringify(command), { qos: 1 });
      await until(() => answers.length > 0);
      expect(answers).toMatchObject([{ job_number: "00000002", status: "done" }]);
    } finally {
      stop.abort();
      server.close();
      server.closeAllConnections();
      await running;
      await link.close();
    }
  });
});
