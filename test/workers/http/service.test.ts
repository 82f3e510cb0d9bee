import { env } from "cloudflare:test";
import { describe, expect, it } from "vitest";
import { parseEnv } from "../../../src/env.ts";
import { declaredRoutes } from "../../../src/http/route-registry.ts";
import { appWith, request, settings } from "../support.ts";

describe("the health of the service", () => {
  it("is reported by /healthz", async () => {
    const response = await request("/healthz");
    expect(response.status).toBe(200);
    expect(await response.json()).toEqual({ status: "ok" });
  });

  it("is ready while all components respond, with the broker over WebSocket or TCP", async () => {
    const parts = { libsql: "up", clickhouse: "up", broker: "up", objects: "up" };
    for (const app of [appWith({}), appWith({ MQTT_URL: settings.MQTT_TCP_URL ?? "" })]) {
      const response = await app.request("/readyz");
      expect(await response.json()).toMatchObject({ status: "ready", parts });
      expect(response.status).toBe(200);
    }
  });

  it("is ready while one node of the broker responds", async () => {
    const MQTT_URL = `ws://127.0.0.1:9, mqtt://127.0.0.1:9,${settings.MQTT_URL}`;
    expect((await appWith({ MQTT_URL }).request("/readyz")).status).toBe(200);
  });

  it.each([
    ["libsql", { LIBSQL_URL: "http://127.0.0.1:9" }],
    ["clickhouse", { CLICKHOUSE_URL: "http://127.0.0.1:9" }],
    ["broker", { MQTT_URL: "ws://127.0.0.1:9" }],
    ["broker", { MQTT_URL: "mqtt://127.0.0.1:9" }],
    ["broker", { MQTT_URL: "mqtt://127.0.0.1:9,ws://127.0.0.1:9" }],
    ["passwords", { PASSWORDS_URL: "http://127.0.0.1:9", PASSWORDS_TOKEN: "a-token-of-no-use" }],
  ])("is unavailable if %s is down, which the response names", async (part, settings) => {
    const response = await appWith(settings).request("/readyz");
    expect(response.status).toBe(503);
    expect(response.headers.get("Retry-After")).toBe("2");
    expect(await response.json()).toMatchObject({
      status: "unavailable",
      detail: `Down: ${part}`,
      parts: { [part]: "down" },
    });
  });
});

describe("a store outage", () => {
  it("causes 503 with Retry-After, without the cause in the response", async () => {
    const response = await appWith({ LIBSQL_URL: "http://127.0.0.1:9" }).request("/api/v1/users/signup", {
      method: "POST",
      body: JSON.stringify({ username: "someone@example.com", password: "long enough" }),
      headers: { "Content-Type": "application/json" },
    });
    expect(response.status).toBe(503);
    expect(response.headers.get("Retry-After")).toBe("2");
    expect(await response.json()).toEqual({ detail: "The accounts database is not available at the moment" });
  });
});

describe("the API documentation", () => {
  it("covers every registered route", () => {
    const app = appWith({});
    const registered = new Set(
      app.routes.filter(({ method }) => method !== "ALL").map(({ method, path }) => `${method} ${path}`),
    );
    expect(declaredRoutes(app.routes).map(({ method, path }) => `${method} ${path}`)).toEqual([...registered]);
  });

  it("is an OpenAPI document with the schemas of the validation", async () => {
    const document = (await (await request("/openapi.json")).json()) as {
      paths: Record<string, Record<string, { requestBody?: object; security: unknown[]; responses: object }>>;
      components: { schemas: Record<string, object> };
    };
    expect(document.paths["/api/v1/users/signup"]?.post?.requestBody).toMatchObject({
      content: { "application/json": { schema: { $ref: "#/components/schemas/UserRegister" } } },
    });
    expect(document.components.schemas.UserRegister).toMatchObject({
      required: ["username", "password"],
      properties: { password: { type: "string", minLength: 8, maxLength: 128 } },
    });
    expect(document.paths["/api/v1/users/me"]?.get?.security).toEqual([{ bearer: [] }]);
    expect(Object.keys(document.paths["/api/v1/users/me"]?.get?.responses ?? {})).toEqual(["200", "401", "403", "503"]);
    expect(Object.keys(document.components.schemas)).toContain("HTTPValidationError");
  });

  it("has a unique id for each operation", async () => {
    const { paths } = (await (await request("/openapi.json")).json()) as {
      paths: Record<string, Record<string, { operationId: string }>>;
    };
    const names = Object.values(paths).flatMap((path) => Object.values(path).map(({ operationId }) => operationId));
    expect(names).toEqual([...new Set(names)]);
  });

  it("is also a page without external resources", async () => {
    const response = await request("/docs");
    expect(response.headers.get("Content-Type")).toContain("text/html");
    const page = await response.text();
    expect(page).toContain("/api/v1/users/signup");
    expect(page).not.toMatch(/<script|https?:\/\//);
    const style = await request("/docs/style.css");
    expect(style.headers.get("Content-Type")).toContain("text/css");
  });

  it("includes the public keys, and no private ones", async () => {
    const { keys } = (await (await request("/.well-known/jwks.json")).json()) as { keys: Record<string, string>[] };
    expect(keys).toEqual([
      {
        kid: expect.any(String),
        kty: "EC",
        crv: "P-256",
        x: expect.any(String),
        y: expect.any(String),
        alg: "ES256",
        use: "sig",
      },
    ]);
  });
});

describe("parseEnv", () => {
  const problem = (settings: Record<string, unknown>): string => {
    try {
      parseEnv({ ...env, ...settings });
      return "";
    } catch (error) {
      return (error as Error).message;
    }
  };

  it.each([
    [{ LIBSQL_URL: undefined }, "The setting LIBSQL_URL is missing."],
    [
      { MQTT_URL: "http://x" },
      "The setting MQTT_URL must be a URL that begins with ws:// or wss:// or mqtt:// or mqtts://, or several, separated by commas.",
    ],
    [
      { CLICKHOUSE_URL: "http://a:8123, ftp://b" },
      "The setting CLICKHOUSE_URL must be a URL that begins with http:// or https://, or several, separated by commas.",
    ],
    [{ CLICKHOUSE_REPLICATION: "maybe" }, "The setting CLICKHOUSE_REPLICATION must be keeper or none."],
    [{ CLICKHOUSE_INSERT_QUORUM: "0" }, "The setting CLICKHOUSE_INSERT_QUORUM must be auto, or a number from 1 to 9."],
    [
      { MQTT_URL: "ws://x,http://x" },
      "The setting MQTT_URL must be a URL that begins with ws:// or wss:// or mqtt:// or mqtts://, or several, separated by commas.",
    ],
    [{ MQTT_URL: " , " }, "The setting MQTT_URL is missing."],
    [{ JWT_KEYS: "no json" }, "The setting JWT_KEYS is not JSON."],
    [{ JWT_KEYS: "[]" }, "The setting JWT_KEYS must hold at least one key."],
    [
      { PASSWORDS_URL: "http://127.0.0.1:9" },
      "The setting PASSWORDS_TOKEN must be set if PASSWORDS_URL is set, and only then.",
    ],
    [
      { ENCRYPTION_KEY: "short" },
      "The setting ENCRYPTION_KEY must be 32 bytes in base64, or two such keys separated by a comma.",
    ],
    [{ TOKEN_LIFETIME_SECONDS: "1" }, "The setting TOKEN_LIFETIME_SECONDS must be a whole number from 60 to 86400."],
    [
      { SETUP_TOKEN: "sixteen characters", ENROLMENT_TOKEN: "sixteen characters" },
      "The setting ENROLMENT_TOKEN must differ from SETUP_TOKEN.",
    ],
    [{ METRICS_TOKEN: "too short" }, "The setting METRICS_TOKEN must have at least 16 characters."],
    [
      { ENROLMENT_TOKEN: "sixteen characters", METRICS_TOKEN: "sixteen characters" },
      "The setting METRICS_TOKEN must differ from SETUP_TOKEN and ENROLMENT_TOKEN.",
    ],
    [
      { LIBSQL_URL: undefined, CLICKHOUSE_URL: undefined },
      "The setting LIBSQL_URL is missing. The setting CLICKHOUSE_URL is missing.",
    ],
  ])("explains what is wrong with %j", (settings, sentence) => {
    expect(problem(settings)).toBe(sentence);
  });

  it("never repeats an invalid value", () => {
    expect(problem({ SETUP_TOKEN: "hunter2", CREDENTIAL_PEPPER: "swordfish" })).not.toMatch(/hunter2|swordfish/);
  });
});
