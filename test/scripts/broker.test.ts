import { mkdtempSync, rmSync } from "node:fs";
import { createServer, type Server } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { exportJWK, generateKeyPair, SignJWT } from "jose";
import { connectAsync, connect as connectNow, type MqttClient } from "mqtt";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { brokerPart } from "../../scripts/stack/broker.ts";
import { anyFreePort } from "../../scripts/stack/ports.ts";
import { Supervisor } from "../../scripts/stack/supervisor.ts";
import { until } from "../support/product.ts";

const ISSUER = "controller";

describe("the broker", () => {
  const supervisor = new Supervisor();
  const folder = mkdtempSync(join(tmpdir(), "broker-"));
  let keyServer: Server;
  let port: number;
  let sign: (claims: object, seconds?: number) => Promise<string>;
  const clients: MqttClient[] = [];

  beforeAll(async () => {
    const { publicKey, privateKey } = await generateKeyPair("ES256");
    const jwks = { keys: [{ ...(await exportJWK(publicKey)), kid: "a", alg: "ES256" }] };
    keyServer = createServer((_request, response) => response.end(JSON.stringify(jwks)));
    await new Promise<void>((resolve) => keyServer.listen(0, "127.0.0.1", resolve));
    sign = (claims, seconds = 60) =>
      new SignJWT({ login_type: "agent", scope: "broker:use", ...claims })
        .setProtectedHeader({ alg: "ES256", kid: "a" })
        .setIssuer(ISSUER)
        .setAudience(ISSUER)
        .setExpirationTime(Math.ceil(Date.now() / 1000) + seconds)
        .sign(privateKey);
    const [tcpPort, wsPort] = [await anyFreePort(), await anyFreePort()];
    port = tcpPort;
    const jwksUrl = `http://127.0.0.1:${(keyServer.address() as { port: number }).port}/`;
    await supervisor.start(
      brokerPart({ dataDir: folder, host: "127.0.0.1", tcpPort, wsPort, jwksUrl, issuer: ISSUER }),
    );
  });

  afterAll(async () => {
    await Promise.all(clients.map((client) => client.endAsync(true)));
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

  it("lets nobody in without a good token of one's own", async () => {
    await expect(connectAsync(`mqtt://127.0.0.1:${port}`, { reconnectPeriod: 0 })).rejects.toThrow(/Not authorized/);
    await expect(connect("a", "no token")).rejects.toThrow(/Not authorized/);
    await expect(connect("b", await sign({ sub: "a" }))).rejects.toThrow(/Not authorized/);
    await expect(connect("a", await sign({ sub: "a" }, -60))).rejects.toThrow(/Not authorized/);
    await expect(connect("a", await sign({ sub: "a", scope: "agents:read" }))).rejects.toThrow(/Not authorized/);
    await expect(connect("a", await sign({ sub: "a", login_type: "user" }))).rejects.toThrow(/Not authorized/);
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

  it("ends a connection with the token that opened it", async () => {
    const client = await connect("a", await sign({ sub: "a" }, 1));
    const startedMs = Date.now();
    expect(await closed(client)).toBe("closed");
    expect(Date.now() - startedMs).toBeLessThan(3_000);
  });
});
