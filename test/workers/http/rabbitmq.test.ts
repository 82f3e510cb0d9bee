import { env } from "cloudflare:test";
import { describe, expect, it, vi } from "vitest";
import { createTokens } from "../../../src/auth/tokens.ts";
import { parseEnv } from "../../../src/env.ts";
import {
  adminToken,
  appWith,
  newAgent,
  newApp,
  PASSWORD,
  request,
  send,
  settings,
  signedUp,
  tokenOf,
  uniqueName,
} from "../support.ts";
import { invalidTokens } from "./invalid-tokens.ts";

/** Asks like RabbitMQ's plugin rabbitmq_auth_backend_http. */
const ask = async (check: string, question: Record<string, string>): Promise<string> => {
  const body = new URLSearchParams({ vhost: "/", ...question });
  const response = await request(`/api/v1/broker/rabbitmq/${check}`, { method: "POST", body });
  return response.status === 200 ? await response.text() : String(response.status);
};
const logIn = (username: string, password: string, client_id = `agent/${username}`) =>
  ask("user", { username, password, client_id });

describe("a login at RabbitMQ", () => {
  it("is allowed with a valid token, and tells the kind of client", async () => {
    const { apId, token } = await newAgent();
    expect(await logIn(apId, token)).toBe("allow agent");
    const app = await newApp({ broker: true });
    expect(await logIn(app.appName, app.token, "bridge-1")).toBe("allow service");
    const user = await signedUp();
    expect(await logIn(user.username, user.token, `subscriber/${user.username}`)).toBe("allow subscriber");
    const limited = await newApp();
    expect(await logIn(limited.appName, limited.token, `subscriber/${limited.appName}`)).toBe("allow subscriber");
    const { JWT_KEYS: keys, JWT_ISSUER: issuer } = parseEnv(env);
    const account = { sub: "publisher", login_type: "third_party_app" } as const;
    const claims = { ...account, roles: [], scope: "broker:use", ver: 0 };
    const own = await createTokens({ keys, issuer, lifetimeSeconds: 60 }).issue(claims);
    expect(await logIn("publisher", own, "publisher")).toBe("allow controller");
  });

  it("is denied without a valid token of its own", async () => {
    const [{ apId, token }, other] = [await newAgent(), await newAgent()];
    expect(await logIn(apId, "")).toBe("deny");
    expect(await logIn(apId, PASSWORD)).toBe("deny");
    expect(await logIn(apId, other.token)).toBe("deny");
    expect(await logIn(apId, token, "")).toBe("deny");
    expect(await logIn(apId, token, `agent/${other.apId}`)).toBe("deny");
    for (const [defect, invalid] of await invalidTokens(settings.ADMIN_USERNAME ?? "", await adminToken()))
      expect(await logIn(settings.ADMIN_USERNAME ?? "", invalid), defect).toBe("deny");
    const narrowed = await tokenOf(settings.ADMIN_USERNAME ?? "", settings.ADMIN_PASSWORD ?? "", "user", "audit:read");
    expect(await logIn(settings.ADMIN_USERNAME ?? "", narrowed)).toBe("deny");
    for (const secret of [settings.SETUP_TOKEN, settings.ENROLMENT_TOKEN, settings.METRICS_TOKEN])
      expect(await logIn("token", secret ?? "")).toBe("deny");
  });

  it("is denied when the account was deleted or changed", async () => {
    const { apId, token } = await newAgent();
    expect((await send("DELETE", `/api/v1/agents/${apId}`, undefined, await adminToken())).status).toBe(200);
    await vi.waitFor(async () => expect(await logIn(apId, token)).toBe("deny"), { timeout: 10_000 });
  });

  it("is denied to an agent with a dot in its name, and the log says why, without the token", async () => {
    const apId = `${uniqueName()}.x`;
    const agent = { ap_id: apId, password: PASSWORD, configuration: {} };
    expect((await send("POST", "/api/v1/agents/", agent, await adminToken())).status).toBe(200);
    const token = await tokenOf(apId, PASSWORD, "agent");
    const logged = vi.spyOn(console, "log").mockImplementation(() => {});
    const warned = vi.spyOn(console, "warn").mockImplementation(() => {});
    try {
      expect(await logIn(apId, token)).toBe("deny");
      const lines = [...logged.mock.calls, ...warned.mock.calls].map(([line]) => JSON.stringify(line));
      expect(lines.filter((line) => line.includes("dot in its name") && line.includes(apId))).toHaveLength(1);
      expect(lines.filter((line) => line.includes(token))).toEqual([]);
    } finally {
      vi.restoreAllMocks();
    }
  });

  it("fails with 503 while the accounts database is unavailable", async () => {
    const { apId, token } = await newAgent();
    const app = appWith({ LIBSQL_URL: "http://127.0.0.1:9" });
    const body = new URLSearchParams({ username: apId, password: token, client_id: `agent/${apId}` });
    expect((await app.request("/api/v1/broker/rabbitmq/user", { method: "POST", body })).status).toBe(503);
  });
});

describe("a client of RabbitMQ that has logged in", () => {
  const agent = { username: "a", tags: "agent" };
  const queue = { resource: "queue", permission: "configure" };
  const topic = { resource: "topic", name: "amq.topic" };

  it("uses the default virtual host, its own queue and its own topics", async () => {
    expect(await ask("vhost", agent)).toBe("allow");
    expect(await ask("resource", { ...agent, ...queue, name: "mqtt-subscription-agent/aqos1" })).toBe("allow");
    expect(await ask("topic", { ...agent, ...topic, permission: "write", routing_key: "agent.a.data" })).toBe("allow");
    expect(await ask("topic", { ...agent, ...topic, permission: "read", routing_key: "agent.a.command" })).toBe(
      "allow",
    );
  });

  it("uses nothing else", async () => {
    expect(await ask("vhost", { ...agent, vhost: "other" })).toBe("deny");
    expect(await ask("resource", { ...agent, ...queue, name: "mqtt-subscription-bridge-1qos1" })).toBe("deny");
    expect(await ask("topic", { ...agent, ...topic, permission: "write", routing_key: "agent.b.data" })).toBe("deny");
    for (const tags of ["", "administrator", "service administrator", "constructor"]) {
      const question = { username: "a", tags, ...topic, permission: "write", routing_key: "agent.a.data" };
      expect(await ask("topic", question), tags).toBe("deny");
    }
    for (const check of ["vhost", "resource", "topic"]) expect(await ask(check, {})).toBe("deny");
    expect(await ask("unknown", agent)).toBe("422");
  });
});
