import { createExecutionContext, env, waitOnExecutionContext } from "cloudflare:test";
import { Validator } from "@cfworker/json-schema";
import * as fc from "fast-check";
import { expect } from "vitest";
import type { StoredGrant } from "../../src/accounts/account-tables.ts";
import { createAgentStore } from "../../src/accounts/agents/agent-store.ts";
import { anonymous } from "../../src/accounts/audit.ts";
import { createUserStore } from "../../src/accounts/user-store.ts";
import { createApp } from "../../src/app.ts";
import { SCOPES_OF_AGENT, scopesOfUser } from "../../src/auth/roles.ts";
import { createTokens } from "../../src/auth/tokens.ts";
import { parseEnv } from "../../src/env.ts";
import type { OpenApiDocument } from "../../src/http/docs/openapi.ts";
import type { Labels } from "../../src/lib/selectors.ts";
import { Configuration } from "../../src/schemas/agent.ts";
import { type Bindings, createServices } from "../../src/services.ts";
import { createClickHouse } from "../../src/storage/clickhouse.ts";
import { createDatabase } from "../../src/storage/libsql.ts";
import { createTelemetryStore, type TelemetryStore } from "../../src/telemetry/store/telemetry-store.ts";
import worker from "../../src/worker.ts";
import { PASSWORD, SECRETS } from "../support/secret-mark.ts";

/** Sends requests to the Worker under test. Checks every response against the OpenAPI document. */

const BASE = "https://controller.test";

/** Returns the telemetry store, for data that no operation returns. */
export const testStore = (): TelemetryStore => createTelemetryStore(createClickHouse(parseEnv(env)));

export const settings = env as unknown as Record<string, string>;

/** Calls the Worker's handler directly: `SELF.fetch` becomes slower with every call. */
async function dispatch(path: string, init?: RequestInit): Promise<Response> {
  const context = createExecutionContext();
  const response = await worker.fetch(
    new Request(`${BASE}${path}`, init) as Request<unknown, IncomingRequestCfProperties>,
    env,
    context,
  );
  await waitOnExecutionContext(context);
  return response;
}

export async function request(path: string, init?: RequestInit): Promise<Response> {
  const response = await dispatch(path, init);
  // The response to a WebSocket handshake has no body and cannot be cloned.
  const text = response.status === 101 ? "" : await response.clone().text();
  await expectDocumented(init?.method ?? "GET", new URL(path, BASE).pathname, response.status, text);
  return response;
}

let openApi: OpenApiDocument | undefined;

async function expectDocumented(method: string, path: string, status: number, text: string): Promise<void> {
  openApi ??= (await (await dispatch("/openapi.json")).json()) as OpenApiDocument;
  if (path !== "/api/v1/token/" && !path.startsWith("/api/v1/third_party_apps/")) expect(text).not.toMatch(SECRETS);
  const template = Object.keys(openApi.paths)
    .filter((candidate) => new RegExp(`^${candidate.replace(/\{\w+\}/g, "[^/]+")}$`).test(path))
    .toSorted((a, b) => a.split("{").length - b.split("{").length)[0];
  const operation = openApi.paths[template ?? ""]?.[method.toLowerCase()];
  if (operation === undefined) return;
  const documented = operation.responses[status];
  expect(documented, `${method} ${template} returns ${status}, which is not documented`).toBeDefined();
  const schema = documented?.content?.["application/json"]?.schema;
  if (schema === undefined) return;
  const validator = new Validator({ ...schema, components: openApi.components } as object, "2020-12");
  expect(validator.validate(JSON.parse(wellFormed(text))).errors, `${method} ${template} ${status}`).toEqual([]);
}

/** Replaces escaped lone surrogates in JSON: the validator encodes each key as a URI and fails on them. */
const wellFormed = (json: string): string => json.replaceAll(/\\ud[89a-f][0-9a-f]{2}/gi, "\\ufffd");

export const send = (
  method: string,
  path: string,
  body?: unknown,
  token?: string,
  contentType = "application/json",
): Promise<Response> =>
  request(path, {
    method,
    headers: {
      ...(body !== undefined && { "Content-Type": contentType }),
      ...(token !== undefined && bearer(token)),
    },
    ...(body !== undefined && { body: typeof body === "string" ? body : JSON.stringify(body) }),
  });

export const postJson = (path: string, body: unknown, headers: Record<string, string> = {}): Promise<Response> =>
  request(path, {
    method: "POST",
    headers: { "Content-Type": "application/json", ...headers },
    body: typeof body === "string" ? body : JSON.stringify(body),
  });

export const bearer = (token: string): { Authorization: string } => ({ Authorization: `Bearer ${token}` });

export type LoginType = "user" | "agent" | "third_party_app";

export const logIn = (
  username: string,
  password: string,
  loginType: LoginType = "user",
  scope = "",
  address?: string,
): Promise<Response> =>
  request(`/api/v1/token/?login_type=${loginType}`, {
    method: "POST",
    headers: address === undefined ? {} : { "CF-Connecting-IP": address },
    body: new URLSearchParams({ username, password, scope }),
  });

export async function tokenOf(
  username: string,
  password: string,
  loginType?: LoginType,
  scope?: string,
): Promise<string> {
  const response = await logIn(username, password, loginType, scope);
  expect(response.status).toBe(200);
  return ((await response.json()) as { access_token: string }).access_token;
}

export { PASSWORD };

/** Generates texts of any code units, including lone surrogates. */
export const anyText = (constraints: { minLength?: number; maxLength: number }): fc.Arbitrary<string> =>
  fc.oneof(
    fc.string({ unit: "binary", ...constraints }),
    fc.array(fc.integer({ min: 0xd700, max: 0xe0ff }), constraints).map((units) => String.fromCharCode(...units)),
  );

/** Names that are unique to one test. */
export const uniqueEmail = (): string => `u-${crypto.randomUUID()}@example.com`;
export const uniqueName = (): string => `n-${crypto.randomUUID()}`;

let admin: string | undefined;

export async function adminToken(): Promise<string> {
  admin ??= await tokenOf(settings.ADMIN_USERNAME ?? "", settings.ADMIN_PASSWORD ?? "");
  return admin;
}

const config = parseEnv(env);
const database = createDatabase({ url: config.LIBSQL_URL });
const tokens = createTokens({
  keys: config.JWT_KEYS,
  issuer: config.JWT_ISSUER,
  lifetimeSeconds: config.TOKEN_LIFETIME_SECONDS,
});
const BY = { kind: "console", name: "test", requestId: "" } as const;

/** Creates a user with PASSWORD and a token. Writes to the database directly: hashing would take most of the suite's time. */
export async function signedUp(grants: StoredGrant[] | null = null): Promise<{ username: string; token: string }> {
  const users = createUserStore(database);
  const username = uniqueEmail();
  const user = { username, passwordHash: settings.PASSWORD_HASH ?? "", roles: ["user" as const], grants };
  await users.insert(user, anonymous(""));
  const ver = (await users.find(username))?.version ?? 0;
  const scope = scopesOfUser(["user"], grants).join(" ");
  return { username, token: await tokens.issue({ sub: username, login_type: "user", roles: ["user"], scope, ver }) };
}

/** Creates an agent with PASSWORD and a token, directly in the database as well. */
export async function newAgent(
  configuration: Record<string, unknown> = {},
  labels: Labels = {},
): Promise<{ apId: string; token: string }> {
  const agents = createAgentStore(database);
  const apId = uniqueName();
  const credential = { credentialKind: "argon2id", credential: settings.PASSWORD_HASH ?? "" } as const;
  const agent = { apId, ...credential, configuration: Configuration.parse(configuration), labels };
  const { version: ver } = await agents.insert(agent, BY);
  await agents.markOnboard(apId);
  const scope = SCOPES_OF_AGENT.join(" ");
  return { apId, token: await tokens.issue({ sub: apId, login_type: "agent", roles: [], scope, ver }) };
}

export async function newApp(permissions: object = {}): Promise<{ appName: string; token: string }> {
  const appName = uniqueName();
  const body = { app_name: appName, api_key: PASSWORD, permissions };
  expect((await send("POST", "/api/v1/third_party_apps/", body, await adminToken())).status).toBe(200);
  return { appName, token: await tokenOf(appName, PASSWORD, "third_party_app") };
}

const { ASSETS, AGENT_SHARD, JOB_STREAM, PUBLISHER, LEDGER, NOTIFIER } = env;

/** Creates a separate app with changed settings and bindings. */
export const appWith = (changes: Record<string, string>, bindings: Partial<Bindings> = {}) =>
  createApp(
    createServices(parseEnv({ ...env, ...changes }), {
      ASSETS,
      AGENT_SHARD,
      JOB_STREAM,
      PUBLISHER,
      LEDGER,
      NOTIFIER,
      ...bindings,
    }),
  );
