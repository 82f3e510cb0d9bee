import { randomUUID } from "node:crypto";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Redis } from "ioredis";
import { connectAsync, type MqttClient } from "mqtt";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { hasRedis, redisComponent } from "../../scripts/harness/brokers/redis-server.ts";
import { until } from "../../scripts/harness/product.ts";
import { DEFAULT_ISSUER } from "../../src/env.ts";
import { brokerComponent } from "../../src/programs/stack/components/broker-process.ts";
import { anyFreePort } from "../../src/programs/stack/ports.ts";
import { Supervisor } from "../../src/programs/stack/supervisor.ts";
import { ADMIN, sharedProduct } from "../support/product.ts";
import { SECRET_MARK } from "../support/secret-mark.ts";
import { ServiceClient } from "../support/service-client.ts";

const PASSWORD = `${SECRET_MARK} password`;

/** Two brokers with Redis next to the product, with its accounts. */
describe.skipIf(!hasRedis)("brokers with Redis (of Debian's package redis-server)", () => {
  const folder = mkdtempSync(join(tmpdir(), "redis-brokers-"));
  const supervisor = new Supervisor();
  const clients: MqttClient[] = [];
  const urls: string[] = [];
  let service: ServiceClient;
  let redis: Redis;

  beforeAll(async () => {
    const product = await sharedProduct();
    service = new ServiceClient(product.url);
    const server = await redisComponent(join(folder, "redis"));
    await supervisor.start(server.component);
    redis = new Redis(server.url);
    for (const name of ["one", "two"]) {
      const [tcpPort, wsPort] = [await anyFreePort(), await anyFreePort()];
      const component = brokerComponent({
        ...{ dataDir: join(folder, name), host: "127.0.0.1", tcpPort, wsPort, redisUrl: server.url },
        jwksUrl: `${product.url}/.well-known/jwks.json`,
        issuer: DEFAULT_ISSUER,
        accounts: { url: product.urls.libsql ?? "" },
      });
      await supervisor.start({ ...component, name });
      urls.push(`mqtt://127.0.0.1:${tcpPort}`);
    }
  });

  afterAll(async () => {
    await Promise.all(clients.map((client) => client.endAsync(true)));
    redis.disconnect();
    await supervisor.stop();
    rmSync(folder, { recursive: true, force: true });
  });

  it("disconnect a deleted agent from every node, and delete its sessions, connected or not", async () => {
    const admin = await service.tokenOf(ADMIN);
    const username = `revoked-${randomUUID()}`;
    const agent = { ap_id: username, password: PASSWORD, configuration: {} };
    await service.post("/api/v1/agents/", admin, agent);
    const password = await service.tokenOf({ username, password: PASSWORD }, "agent");
    const connect = async (url: string, clientId: string) => {
      const options = { username, password, clientId, clean: false, reconnectPeriod: 0 };
      const client = await connectAsync(url, options);
      clients.push(client.on("error", () => {}));
      await client.subscribeAsync(`agent/${username}/command`, { qos: 1 });
      return client;
    };
    await (await connect(urls[0] ?? "", "left")).endAsync();
    const connected = await Promise.all(urls.map((url, i) => connect(url, `connected-${i}`)));
    const closed = connected.map((client) => new Promise<void>((resolve) => client.once("close", () => resolve())));
    const keys = async () => (await redis.keys("*")).filter((key) => key.includes(username));
    expect((await keys()).length).toBeGreaterThan(3);
    expect((await service.send("DELETE", `/api/v1/agents/${username}`, admin)).status).toBe(200);
    await Promise.all(closed);
    await until(async () => (await keys()).length === 0);
    expect(await redis.sismember("broker:agents", username)).toBe(0);
  });
});
