import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Validator } from "@seriousme/openapi-schema-validator";
import { connectAsync } from "mqtt";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { WebSocket } from "ws";
import { Product, until } from "../support/product.ts";

const ADMIN = { username: "root@example.com", password: "administrator's password" };
const USER = { username: "first@example.com", password: "first user's password" };

/** One data folder for both forms: what was written under the first must be there under the second. */
const dataDir = mkdtempSync(join(tmpdir(), "controller-e2e-"));
afterAll(() => rmSync(dataDir, { recursive: true, force: true }));

describe.each(["dev", "start"] as const)("npm run %s", (form) => {
  let product: Product;

  const call = (path: string, init?: RequestInit) =>
    fetch(`${product.url}${path}`, { signal: AbortSignal.timeout(10_000), ...init });
  const postJson = (path: string, body: object) =>
    call(path, { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body) });
  const logIn = (account: typeof USER) =>
    call("/api/v1/token/?login_type=user", { method: "POST", body: new URLSearchParams(account) });
  const me = async (account: typeof USER) => {
    const { access_token } = (await (await logIn(account)).json()) as { access_token: string };
    return await call("/api/v1/users/me", { headers: { Authorization: `Bearer ${access_token}` } });
  };

  const untilReadyzAnswers = async (status: number): Promise<unknown> => {
    let body: unknown;
    await until(async () => {
      const response = await call("/readyz");
      body = await response.json();
      return response.status === status;
    });
    return body;
  };

  beforeAll(async () => {
    product = await Product.run(form, dataDir, { ADMIN_USERNAME: ADMIN.username, ADMIN_PASSWORD: ADMIN.password });
  });

  it("is ready, with every part up", async () => {
    expect(await untilReadyzAnswers(200)).toEqual({
      status: "ready",
      parts: { libsql: "up", clickhouse: "up", broker: "up" },
    });
  });

  it("lets the first administrator in, whose password Node hashed and the Worker checks", async () => {
    expect(await (await me(ADMIN)).json()).toMatchObject({ username: ADMIN.username, roles: "admin" });
  });

  it(form === "dev" ? "signs up, logs in and knows its user" : "still knows the user of an earlier run", async () => {
    if (form === "dev") expect((await postJson("/api/v1/users/signup", USER)).status).toBe(200);
    expect(await (await me(USER)).json()).toMatchObject({ username: USER.username, roles: "user" });
  });

  it("describes itself in valid OpenAPI, and on a page", async () => {
    const document = (await (await call("/openapi.json")).json()) as Record<string, unknown>;
    expect(await new Validator().validate(document)).toEqual({ valid: true });
    expect(await (await call("/docs")).text()).toContain("API reference");
  });

  it.each(["mqtt", "ws"])("has a broker over %s that passes messages on", async (protocol) => {
    const port = protocol === "mqtt" ? product.mqttPort : product.mqttWsPort;
    const client = await connectAsync(`${protocol}://127.0.0.1:${port}`);
    const received = new Promise<string>((resolve) =>
      client.on("message", (_topic, payload) => resolve(payload.toString())),
    );
    await client.subscribeAsync("greetings", { qos: 1 });
    await client.publishAsync("greetings", "hello", { qos: 1 });
    expect(await received).toBe("hello");
    await client.endAsync();
  });

  it.each([
    ["sqld", "libsql"],
    ["clickhouse", "clickhouse"],
    ["broker", "broker"],
  ])("goes on without %s when it is killed, says so, and gets it back", async (part, name) => {
    const killed = product.pidOf(part);
    process.kill(killed, "SIGKILL");
    expect(await untilReadyzAnswers(503)).toMatchObject({ status: "unavailable", parts: { [name]: "down" } });
    expect((await call("/healthz")).status).toBe(200);
    await product.says(new RegExp(`${part} ended unexpectedly \\(SIGKILL\\)[^]*${part} is back`));
    await untilReadyzAnswers(200);
    expect(product.pidOf(part)).not.toBe(killed);
    expect((await me(USER)).status).toBe(200);
  });

  it.each([
    ["sqld", "libsql"],
    ["clickhouse", "clickhouse"],
    ["broker", "broker"],
  ])("answers within two seconds although %s hangs", async (part, name) => {
    const pid = product.pidOf(part);
    process.kill(pid, "SIGSTOP");
    try {
      const startedMs = Date.now();
      const [ready, signup, health] = await Promise.all([
        call("/readyz"),
        postJson("/api/v1/users/signup", { username: `${part}-${form}@example.com`, password: "long enough" }),
        call("/healthz"),
      ]);
      expect(Date.now() - startedMs).toBeLessThan(2_000);
      expect(ready.status).toBe(503);
      expect(await ready.json()).toMatchObject({ detail: `Down: ${name}` });
      expect(signup.status).toBe(part === "sqld" ? 503 : 200);
      expect(health.status).toBe(200);
    } finally {
      process.kill(pid, "SIGCONT");
    }
    await untilReadyzAnswers(200);
  });

  it("keeps passwords, tokens and keys out of what it prints", async () => {
    const { access_token } = (await (await logIn(USER)).json()) as { access_token: string };
    for (const secret of [ADMIN.password, USER.password, access_token, '"d":', "argon2id"]) {
      expect(product.output).not.toContain(secret);
    }
  });

  it("stops on Ctrl-C within five seconds, although connections are open, and leaves no process", async () => {
    const socket = new WebSocket(`ws://127.0.0.1:${product.mqttWsPort}`, "mqtt");
    socket.on("error", () => {});
    await new Promise((resolve) => socket.once("open", resolve));
    expect((await call("/healthz")).status).toBe(200);
    expect(product.processes().length).toBeGreaterThan(3);

    const { exitCode, tookMs } = await product.interrupt();
    expect(exitCode).toBe(0);
    expect(tookMs).toBeLessThan(5_000);
    expect(product.processes()).toEqual([]);
    expect(product.output).toMatch(/Stopping\.\nStopped\.\n$/);
  });
});
