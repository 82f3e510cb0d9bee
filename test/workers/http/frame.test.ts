import { createExecutionContext } from "cloudflare:test";
import { describe, expect, it, vi } from "vitest";
import { declaredRoutes } from "../../../src/http/route-registry.ts";
import {
  adminToken,
  appWith,
  bearer,
  newAgent,
  newApp,
  PASSWORD,
  postJson,
  request,
  send,
  signedUp,
  uniqueEmail,
  uniqueName,
} from "../support.ts";

const SIGNUP = "/api/v1/users/signup";
const nested = (depth: number): string => "[".repeat(depth) + "]".repeat(depth);

describe("a request that matches no operation", () => {
  it("gets 404 for an unknown path", async () => {
    const response = await request("/api/v1/nothing");
    expect(response.status).toBe(404);
    expect(await response.json()).toEqual({ detail: "Not Found" });
  });

  it("gets 405 with Allow for another method", async () => {
    const response = await request("/healthz", { method: "DELETE" });
    expect(response.status).toBe(405);
    expect(response.headers.get("Allow")).toBe("GET, HEAD");
    expect(await response.json()).toEqual({ detail: "Method Not Allowed" });
  });

  it.each([
    ["/api/v1/token?login_type=user", "/api/v1/token/?login_type=user"],
    ["/api/v1/users/me/", "/api/v1/users/me"],
    ["/healthz/", "/healthz"],
  ])("is redirected from %s to %s with its query", async (from, to) => {
    const response = await request(from, { method: "POST" });
    expect(response.status).toBe(307);
    expect(response.headers.get("Location")).toBe(to);
  });
});

describe("every response", () => {
  it("has a request id, which the caller may choose", async () => {
    expect((await request("/api/v1/nothing")).headers.get("X-Request-Id")).toMatch(/^[0-9a-f-]{36}$/);
    const response = await request("/healthz", { headers: { "X-Request-Id": "mine-1" } });
    expect(response.headers.get("X-Request-Id")).toBe("mine-1");
  });

  it("is logged, or only failures are, depending on LOG_REQUESTS", async () => {
    const lines = vi.spyOn(console, "log");
    const context = () => createExecutionContext();
    const logged = async (path: string, changes: Record<string, string>) => {
      const before = lines.mock.calls.length;
      await appWith(changes).request(path, {}, {}, context());
      return lines.mock.calls.length - before;
    };
    const outage = { CLICKHOUSE_URL: "http://127.0.0.1:9" };
    expect(await logged("/healthz", {})).toBe(1);
    expect(await logged("/healthz", { LOG_REQUESTS: "failures" })).toBe(0);
    expect(await logged("/readyz", { ...outage, LOG_REQUESTS: "failures" })).toBeGreaterThan(0);
    lines.mockRestore();
  });

  it("has security headers", async () => {
    const { headers } = await request("/healthz");
    expect(headers.get("X-Content-Type-Options")).toBe("nosniff");
    expect(headers.get("Content-Security-Policy")).toContain("default-src 'none'");
    expect(headers.get("Referrer-Policy")).toBe("no-referrer");
    expect(headers.get("Strict-Transport-Security")).toContain("max-age=");
  });

  it("must not be cached, unless it is public", async () => {
    const { token } = await signedUp();
    const withOrigin = { ...bearer(token), Origin: "https://dashboard.example.com" };
    for (const headers of [bearer(token), withOrigin, {}])
      for (const path of ["/api/v1/users/me", "/api/v1/overview", "/api/v1/agents/unknown"])
        expect((await request(path, { headers })).headers.get("Cache-Control"), path).toBe("no-store");
  });

  it("has a Date header, which not every platform sets", async () => {
    const { token } = await signedUp();
    for (const headers of [bearer(token), {}]) {
      const date = (await request("/api/v1/users/me", { headers })).headers.get("Date") ?? "";
      expect(date).toMatch(/ GMT$/);
      expect(Math.abs(Date.now() - Date.parse(date))).toBeLessThan(5_000);
    }
  });

  it("is readable by the configured origins only", async () => {
    const origin = async (Origin: string) =>
      (await request("/healthz", { headers: { Origin } })).headers.get("Access-Control-Allow-Origin");
    expect(await origin("https://dashboard.example.com")).toBe("https://dashboard.example.com");
    expect(await origin("https://evil.example.com")).toBeNull();
  });

  it("allows a preflight request from a configured origin", async () => {
    const headers = { Origin: "https://dashboard.example.com", "Access-Control-Request-Method": "POST" };
    const response = await request(SIGNUP, { method: "OPTIONS", headers });
    expect(response.status).toBe(204);
    expect(response.headers.get("Access-Control-Allow-Methods")).toContain("POST");
  });
});

describe("a bearer token", () => {
  it("is required: without one the request gets 401", async () => {
    for (const headers of [
      {},
      { Authorization: "Basic eA==" },
      { Authorization: "Bearer" },
      { Authorization: "Bearer a b" },
    ]) {
      const response = await request("/api/v1/users/me", { headers });
      expect(response.status).toBe(401);
      expect(response.headers.get("WWW-Authenticate")).toBe("Bearer");
      expect(await response.json()).toEqual({ detail: "Not authenticated" });
    }
  });

  it("is rejected with 401 if it is forged or damaged", async () => {
    const { token } = await signedUp();
    const [head, claims, signature = ""] = token.split(".");
    const none = btoa('{"alg":"none"}').replaceAll("=", "");
    const tampered = [
      `${head}.${claims}.${signature.slice(0, -4)}AAAA`,
      `${none}.${claims}.`,
      "x.y.z",
      "x",
      `${token}.`,
    ];
    for (const forged of tampered) {
      const response = await request("/api/v1/users/me", { headers: bearer(forged) });
      expect(response.status).toBe(401);
      expect(await response.json()).toEqual({ detail: "Could not validate credentials" });
    }
  });
});

describe("an invalid body", () => {
  const items = async (response: Response) =>
    ((await response.json()) as { detail: { loc: unknown[]; type: string }[] }).detail;

  it.each([
    ["{", 1],
    ['{"a":}', 5],
    ["[1,]", 3],
    ["nul", 0],
    ['{"a" 1}', 5],
    ['  {"a":1} x', 10],
    ['{"a":"\\x"}', 5],
    ["01", 0],
  ])("gets 422 with the position of the syntax error: %s", async (body, position) => {
    const response = await postJson(SIGNUP, body);
    expect(response.status).toBe(422);
    expect(await response.json()).toEqual({
      detail: [{ loc: ["body", position], msg: "JSON decode error", type: "json_invalid" }],
    });
  });

  it("gets 422 if it is missing", async () => {
    const response = await request(SIGNUP, { method: "POST" });
    expect(response.status).toBe(422);
    expect(await items(response)).toEqual([{ loc: ["body"], msg: "Field required", type: "missing" }]);
  });

  it("counts as missing if it is null, for every operation with a body", async () => {
    const [admin, agent, bridge] = await Promise.all([adminToken(), newAgent(), newApp({ broker: true })]);
    const tokens: Record<string, string> = {
      "/api/v1/agent_update/update": agent.token,
      "/api/v1/bridge/data": bridge.token,
    };
    const withBody = declaredRoutes(appWith({}).routes).filter(({ inputs }) => inputs.json !== undefined);
    expect(withBody.length).toBeGreaterThan(15);
    for (const { method, path } of withBody) {
      const target = `${path.replace(/:\w+/, uniqueName())}?job_number=${uniqueName()}`;
      const response = await send(method, target, "null", tokens[path] ?? admin);
      expect(response.status, path).toBe(422);
      expect(await items(response), path).toEqual([{ loc: ["body"], msg: "Field required", type: "missing" }]);
    }
  });

  it.each([["[]"], ['"text"'], ["1"], ["true"]])("gets 422 if it is not an object: %s", async (body) => {
    const response = await postJson(SIGNUP, body);
    expect(response.status).toBe(422);
    expect(await items(response)).toMatchObject([{ loc: ["body"], type: "model_attributes_type" }]);
  });

  it("gets 422 if its content type is not JSON", async () => {
    const body = JSON.stringify({ username: uniqueEmail(), password: PASSWORD });
    const response = await postJson(SIGNUP, body, { "Content-Type": "text/plain" });
    expect(response.status).toBe(422);
    expect(await items(response)).toMatchObject([{ loc: ["body"], type: "model_attributes_type" }]);
  });

  it("is parsed as JSON if it has no content type", async () => {
    const body = new TextEncoder().encode(JSON.stringify({ username: uniqueEmail(), password: PASSWORD }));
    expect((await request(SIGNUP, { method: "POST", body })).status).toBe(200);
  });

  it("gets 400 if it is not UTF-8", async () => {
    const body = new Uint8Array([0x22, 0xff, 0x22]);
    const response = await request(SIGNUP, { method: "POST", headers: { "Content-Type": "application/json" }, body });
    expect(response.status).toBe(400);
    expect(await response.json()).toEqual({ detail: "There was an error parsing the body" });
  });

  it("is ignored, however large, by an operation without a body", async () => {
    const init = { method: "POST", body: "x".repeat(1024 * 1024 + 1), headers: bearer(await adminToken()) };
    expect((await request("/api/v1/send_command", init)).status).toBe(422);
  });

  it("gets 413 above one mebibyte, with and without a declared length", async () => {
    const body = (bytes: number) => JSON.stringify({ filling: "x".repeat(bytes - 14) });
    const mebibyte = 1024 * 1024;
    expect((await postJson(SIGNUP, body(mebibyte))).status).toBe(422);
    expect((await postJson(SIGNUP, body(mebibyte + 1))).status).toBe(413);
    const form = new URLSearchParams({ username: "x".repeat(mebibyte), password: PASSWORD });
    expect((await request("/api/v1/token/?login_type=user", { method: "POST", body: form })).status).toBe(413);
    const { readable, writable } = new TransformStream<Uint8Array, Uint8Array>();
    const writer = writable.getWriter();
    const written = writer.write(new TextEncoder().encode(body(mebibyte + 1))).then(() => writer.close());
    const init = { method: "POST", headers: { "Content-Type": "application/json" }, body: readable, duplex: "half" };
    expect((await request(SIGNUP, init as RequestInit)).status).toBe(413);
    await written.catch(() => {});
  });

  it.each([33, 100_000])("gets 422 if it is nested %i levels deep", async (depth) => {
    const response = await postJson(SIGNUP, nested(depth));
    expect(response.status).toBe(422);
    expect(await items(response)).toMatchObject([{ loc: ["body"], type: "value_error" }]);
  });

  it("is validated if it is nested 32 levels deep", async () => {
    expect(await items(await postJson(SIGNUP, nested(32)))).toMatchObject([{ type: "model_attributes_type" }]);
  });

  it("cannot change a prototype", async () => {
    const body = `{"__proto__":{"polluted":1,"username":"${uniqueEmail()}"},"constructor":{"prototype":{"polluted":1}},"password":"${PASSWORD}"}`;
    const response = await postJson(SIGNUP, body);
    expect(response.status).toBe(422);
    expect(await items(response)).toEqual([{ loc: ["body", "username"], msg: "Field required", type: "missing" }]);
    expect(({} as Record<string, unknown>).polluted).toBeUndefined();
  });

  it("gets 400 if it is a form that cannot be read", async () => {
    const headers = { "Content-Type": "multipart/form-data; boundary=x" };
    const response = await request("/api/v1/token/?login_type=user", { method: "POST", headers, body: "not a form" });
    expect(response.status).toBe(400);
    expect(await response.json()).toEqual({ detail: "There was an error parsing the body" });
  });
});

describe("invalid input", () => {
  it("is reported field by field and never echoed", async () => {
    const response = await postJson(SIGNUP, { username: "no-address", password: "short" });
    expect(response.status).toBe(422);
    const text = await response.text();
    expect(JSON.parse(text)).toEqual({
      detail: [
        { loc: ["body", "username"], msg: "value is not a valid email address", type: "value_error" },
        { loc: ["body", "password"], msg: "String should have at least 8 characters", type: "string_too_short" },
      ],
    });
    expect(text).not.toMatch(/no-address|"short"/);
  });

  it("is reported for a query", async () => {
    const response = await request("/api/v1/token/?login_type=other", { method: "POST" });
    expect(await response.json()).toEqual({
      detail: [
        {
          loc: ["query", "login_type"],
          msg: "Input should be 'user', 'agent' or 'third_party_app'",
          type: "literal_error",
        },
      ],
    });
  });

  it("is reported for a header", async () => {
    const headers = { ...bearer(await adminToken()), "Idempotency-Key": "k".repeat(257) };
    const response = await postJson(`/api/v1/callback/agent_data?job_number=${uniqueName()}`, [], headers);
    expect(response.status).toBe(422);
    expect(await response.json()).toEqual({
      detail: [
        {
          loc: ["header", "Idempotency-Key"],
          msg: "String should have at most 256 characters",
          type: "string_too_long",
        },
      ],
    });
  });

  it("is reported for a form, with the place `body`, and an empty field counts as missing", async () => {
    const body = new URLSearchParams({ username: "", password: "x", grant_type: "client_credentials" });
    const response = await request("/api/v1/token/?login_type=user", { method: "POST", body });
    expect(await response.json()).toEqual({
      detail: [
        {
          loc: ["body", "grant_type"],
          msg: "String should match pattern '^password$'",
          type: "string_pattern_mismatch",
        },
        { loc: ["body", "username"], msg: "Field required", type: "missing" },
      ],
    });
  });
});
