import { randomInt } from "node:crypto";
import { lstatSync, readdirSync, readFileSync } from "node:fs";
import { createConnection } from "node:net";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { promisify } from "node:util";
import { gzip } from "node:zlib";
import { Validator } from "@seriousme/openapi-schema-validator";
import { connectAsync } from "mqtt";
import { beforeAll, describe, expect, it } from "vitest";
import { endedToken, makeAgents } from "../../scripts/harness/accounts.ts";
import { targetOf } from "../../scripts/harness/client.ts";
import { hostileMessages } from "../../scripts/harness/faults/hostile-agents.ts";
import { fuzz } from "../../scripts/harness/fuzz/fuzz.ts";
import { logFindings } from "../../scripts/harness/fuzz/judge.ts";
import { until } from "../../scripts/harness/product.ts";
import { startupBytes } from "../../scripts/harness/usage.ts";
import { createUserStore } from "../../src/accounts/user-store.ts";
import { nativePasswords } from "../../src/programs/password-hasher/native-passwords.ts";
import { createDatabase } from "../../src/storage/libsql.ts";
import { ADMIN, ENROLMENT_TOKEN, sharedProduct } from "../support/product.ts";
import { SECRET_MARK, SECRETS } from "../support/secret-mark.ts";
import { ServiceClient } from "../support/service-client.ts";

/** The production form, seen from outside. No test here stops a component, because other files share the product. */
describe("npm start", () => {
  let product: Awaited<ReturnType<typeof sharedProduct>>;
  let service: ServiceClient;
  let dataDir: string;

  beforeAll(async () => {
    product = await sharedProduct();
    ({ dataDir } = product);
    service = new ServiceClient(product.url);
  });

  it("is ready, with every component up", async () => {
    expect(await service.untilReadyzSays(200)).toMatchObject({
      status: "ready",
      parts: { libsql: "up", clickhouse: "up", broker: "up", passwords: "up" },
    });
  });

  it("logs in the first administrator, whose password Node hashed and the Worker verifies", async () => {
    expect(await (await service.me(ADMIN)).json()).toMatchObject({ username: ADMIN.username, roles: "admin" });
  });

  it("responds to concurrent requests independently", async () => {
    const token = await service.tokenOf(ADMIN);
    const statuses = await Promise.all(
      Array.from({ length: 100 }, async () => (await service.send("GET", "/api/v1/users/me", token)).status),
    );
    expect(new Set(statuses)).toEqual(new Set([200]));
    const strangers = Array.from({ length: 20 }, (_, i) =>
      service.logIn({ username: `stranger-${i}@example.com`, password: ADMIN.password }),
    );
    expect(new Set((await Promise.all(strangers)).map(({ status }) => status))).toEqual(new Set([401]));
  });

  it("needs little memory for a body that becomes a thousand times as long when it is decompressed", async () => {
    const { parts } = JSON.parse(readFileSync(join(dataDir, "stack.json"), "utf8"));
    const mostMegabytes = () =>
      Number(/VmHWM:\s+(\d+) kB/.exec(readFileSync(`/proc/${parts.worker.pid}/status`, "utf8"))?.[1]) / 1024;
    const beforeMegabytes = mostMegabytes();
    const [agent] = await makeAgents(dataDir, "bomb", 1);
    const headers = {
      Authorization: `Bearer ${agent?.token}`,
      "Content-Type": "application/json",
      "Content-Encoding": "gzip",
    };
    // Not synchronously: meanwhile, the service closes connections that are not used.
    const body = await promisify(gzip)(Buffer.alloc(600 * 1024 * 1024));
    const { status } = await service.call("/api/v1/otlp/v1/metrics", { method: "POST", headers, body });
    expect(status).toBe(413);
    expect(mostMegabytes() - beforeMegabytes).toBeLessThan(300);
  });

  it("stores concurrent reports of several agents although one client disconnects before its response", async () => {
    const prefix = `together`;
    const [first, ...others] = await makeAgents(dataDir, prefix, 12);
    const body = JSON.stringify({ payload: { value: 1 } });
    const { hostname, port } = new URL(product.url);
    // The first request starts the insert that all of them share.
    const disconnecting = createConnection(Number(port), hostname);
    await new Promise((resolve) => disconnecting.once("connect", resolve));
    disconnecting.write(
      `POST /api/v1/agent_update/update HTTP/1.1\r\nHost: ${hostname}\r\nAuthorization: Bearer ${first?.token}\r\n` +
        `Content-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n${body}`,
    );
    const statuses = others.map(async ({ token }) => {
      const headers = { Authorization: `Bearer ${token}`, "Content-Type": "application/json" };
      return (await service.call("/api/v1/agent_update/update", { method: "POST", headers, body })).status;
    });
    await sleep(3);
    disconnecting.destroy();
    expect(new Set(await Promise.all(statuses))).toEqual(new Set([200]));
  });

  it("hashes passwords in any script so that the native module verifies them and rejects similar ones", async () => {
    const users = createUserStore(createDatabase({ url: product.urls.libsql ?? "" }));
    const samples = [
      "correct horse",
      "Zürich-Straße",
      "пароль-пароль",
      "密码密码密码密码",
      "🔑🔒🔑🔒🔑🔒🔑🔒",
      "nul\0nul\0nul",
      "x".repeat(128),
    ];
    for (const [i, password] of samples.entries()) {
      const username = `script-${i}@example.com`;
      expect((await service.postJson("/api/v1/users/signup", { username, password })).status).toBe(200);
      const hash = (await users.find(username))?.passwordHash ?? "";
      expect(await nativePasswords.verify(hash, password)).toBe(true);
      expect(await nativePasswords.verify(hash, `${password.slice(0, -1)}é`)).toBe(false);
    }
  });

  it("writes a password reset e-mail to the mail folder, with a link that works", async () => {
    const account = { username: `forgetful@example.com`, password: `${SECRET_MARK} forgotten` };
    await service.postJson("/api/v1/users/signup", account);
    expect((await service.postJson("/api/v1/users/password-recovery", { username: account.username })).status).toBe(
      200,
    );
    const folder = join(dataDir, "mail");
    const messages = () => readdirSync(folder).filter((file) => file.includes(account.username));
    await until(() => messages().length > 0);
    const message = readFileSync(join(folder, messages()[0] ?? ""), "utf8");
    const [, link = "", token] = /(http:\S+)\/#\/reset-password\/([\w-]+)/.exec(message) ?? [];
    expect(link).toBe(product.url);
    expect((await fetch(link)).headers.get("Content-Type")).toContain("text/html");
    const changed = { username: account.username, password: `${SECRET_MARK} remembered` };
    expect(
      (await service.postJson("/api/v1/users/reset-password", { token, new_password: changed.password })).status,
    ).toBe(200);
    expect([(await service.logIn(account)).status, (await service.logIn(changed)).status]).toEqual([401, 200]);
    expect(product.output()).not.toContain(token);
  });

  it("serves a valid OpenAPI document and an API reference", async () => {
    const document = (await (await service.call("/openapi.json")).json()) as Record<string, unknown>;
    expect(await new Validator().validate(document)).toEqual({ valid: true });
    expect(await (await service.call("/docs")).text()).toContain("API reference");
  });

  it.each(["mqtt", "ws"])("has a broker over %s that accepts the tokens of agents and apps", async (protocol) => {
    const admin = await service.tokenOf(ADMIN);
    const password = `${SECRET_MARK} of a device`;
    const apId = `over-${protocol}`;
    const appName = `${protocol}-service`;
    await service.post("/api/v1/agents/", admin, { ap_id: apId, password, configuration: {} });
    const app = { app_name: appName, api_key: password, permissions: { broker: true } };
    await service.post("/api/v1/third_party_apps/", admin, app);
    const connect = async (username: string, loginType: string) => {
      const port = protocol === "mqtt" ? product.mqttPort : product.mqttWsPort;
      const token = await service.tokenOf({ username, password }, loginType);
      return await connectAsync(`${protocol}://127.0.0.1:${port}`, { username, password: token, reconnectPeriod: 0 });
    };
    const subscriber = await connect(appName, "third_party_app");
    const agent = await connect(apId, "agent");
    const received = new Promise<string>((resolve) =>
      subscriber.on("message", (topic, payload) => {
        if (topic.includes(apId)) resolve(`${topic} ${payload}`);
      }),
    );
    await subscriber.subscribeAsync("agent/+/data", { qos: 1 });
    await agent.publishAsync(`agent/${apId}/data`, '{"x":7}', { qos: 1 });
    expect(await received).toBe(`agent/${apId}/data {"x":7}`);
    // The bridge receives it too, and stores it.
    await until(async () => {
      const path = `/api/v1/metrics/agent_multi_metric_data?agent=${apId}&metrics=x`;
      return (await (await service.send("GET", path, admin)).text()).includes('"value":7');
    });
    // A connection ends with its account, and with the permission that it needs.
    const closed = Promise.all(
      [agent, subscriber].map((client) => new Promise<void>((resolve) => client.once("close", () => resolve()))),
    );
    expect((await service.send("DELETE", `/api/v1/agents/${apId}`, admin)).status).toBe(200);
    const change = await service.send("PUT", `/api/v1/third_party_apps/${appName}`, admin, { permissions: {} });
    expect(change.status).toBe(200);
    expect(await Promise.race([closed.then(() => "closed"), sleep(5_000, "open", { ref: false })])).toBe("closed");
  });

  it.each([
    1, // The same requests in each run.
    randomInt(2 ** 31), // Other requests in each run. The title contains the seed.
  ])("keeps to its OpenAPI document for any request of any caller (seed %i)", async (seed) => {
    const outputStart = product.output().length;
    const tokens = { ended: await endedToken(dataDir, ADMIN.username), enrolment: ENROLMENT_TOKEN };
    // Limited by number, not by time: a busy machine sends few requests in a few seconds.
    const options = { url: product.url, admin: ADMIN, seed, seconds: 100, perSecond: 100, maxRequests: 150, tokens };
    const { requests, findings } = await fuzz(options);
    expect([...findings, ...logFindings(product.output().slice(outputStart))]).toEqual([]);
    expect(requests).toBeGreaterThanOrEqual(options.maxRequests);
  });

  it("stores reports over MQTT while other agents publish invalid messages", async () => {
    const outcome = await hostileMessages(targetOf(product), { rounds: 1, pauseMs: 20 });
    expect(outcome).toMatchObject({ lost: 0, duplicates: 0, violations: [] });
    expect(outcome.acknowledged).toBeGreaterThan(50);
  });

  it("rejects queries to its stores without credentials", async () => {
    const query = (url: string) => createUserStore(createDatabase({ url })).administrators();
    const { libsql = "", clickhouse = "" } = product.urls;
    expect(await query(libsql)).toContain(ADMIN.username);
    await expect(query(new URL(libsql).origin)).rejects.toThrow();
    const { origin, username, password } = new URL(clickhouse);
    const path = "/?query=SELECT+count()>=0+FROM+controller.points_v1";
    expect((await fetch(`${origin}${path}`)).status).toBe(404);
    const headers = { Authorization: `Basic ${btoa(`${username}:${password}`)}` };
    expect(await (await fetch(`${origin}${path}`, { headers })).text()).toBe("1\n");
  });

  it("writes no file that other users of the machine can read", () => {
    const open: string[] = [];
    // One file at a time, because ClickHouse removes folders meanwhile.
    const visit = (path: string): void => {
      const stat = lstatSync(path, { throwIfNoEntry: false });
      if (stat === undefined || stat.isSymbolicLink()) return;
      if ((stat.mode & 0o077) !== 0) open.push(path);
      if (stat.isDirectory()) for (const name of namesIn(path)) visit(join(path, name));
    };
    // The tests themselves write these.
    const isOfTests = (name: string) => name.endsWith("-streamed.csv") || name.startsWith("test-");
    for (const name of namesIn(dataDir)) if (!isOfTests(name)) visit(join(dataDir, name));
    expect(open).toEqual([]);
  });

  it("runs a Worker that loads less than 250 KiB gzip at its start", () => {
    const bytes = startupBytes(join(dataDir, "build"));
    expect(bytes).toBeGreaterThan(50 * 1024);
    expect(bytes).toBeLessThan(250 * 1024);
  });

  it("prints no passwords, tokens or keys", async () => {
    expect((await service.me(ADMIN)).status).toBe(200);
    expect(product.output()).not.toMatch(SECRETS);
    expect(product.output()).not.toContain('"d":');
  });
});

function namesIn(folder: string): string[] {
  try {
    return readdirSync(folder);
  } catch {
    return [];
  }
}
