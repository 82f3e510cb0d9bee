import { createExecutionContext, env, waitOnExecutionContext } from "cloudflare:test";
import { Validator } from "@cfworker/json-schema";
import { expect } from "vitest";
import { createApp } from "../../src/app.ts";
import { parseEnv } from "../../src/env.ts";
import type { OpenApiDocument } from "../../src/http/openapi.ts";
import { type Bindings, createServices } from "../../src/services.ts";
import { createClickHouse } from "../../src/telemetry/clickhouse.ts";
import { createTelemetryStore, type TelemetryStore } from "../../src/telemetry/store.ts";
import worker from "../../src/worker.ts";
import { SECRET_MARK, SECRETS } from "../support/secret-mark.ts";

/** Requests to the Worker under test, as its users send them. Every answer is held against the OpenAPI document. */

const BASE = "https://controller.test";

/** The telemetry store itself, for what no operation shows. */
export const testStore = (): TelemetryStore => createTelemetryStore(createClickHouse(parseEnv(env)));

export const settings = env as unknown as Record<string, string>;

/** The Worker's own handler. Not `SELF.fetch`, which takes longer with every call. */
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
  // The answer to a handshake has no body, and cannot be copied.
  const text = response.status === 101 ? "" : await response.clone().text();
  await expectAsDocumented(init?.method ?? "GET", new URL(path, BASE).pathname, response.status, text);
  return response;
}

let openApi: OpenApiDocument | undefined;

async function expectAsDocumented(method: string, path: string, status: number, text: string): Promise<void> {
  openApi ??= (await (await dispatch("/openapi.json")).json()) as OpenApiDocument;
  if (path !== "/api/v1/token/" && !path.startsWith("/api/v1/third_party_apps/")) expect(text).not.toMatch(SECRETS);
  const template = Object.keys(openApi.paths)
    .filter((candidate) => new RegExp(`^${candidate.replace(/\{\w+\}/g, "[^/]+")}$`).test(path))
    .toSorted((a, b) => a.split("{").length - b.split("{").length)[0];
  const operation = openApi.paths[template ?? ""]?.[method.toLowerCase()];
  if (operation === undefined) return;
  const documented = operation.responses[status];
  expect(documented, `${method} ${template} answers ${status}, which is not documented`).toBeDefined();
  const schema = documented?.content?.["application/json"]?.schema;
  if (schema === undefined) return;
  const validator = new Validator({ ...schema, components: openApi.components } as object, "2020-12");
  expect(validator.validate(JSON.parse(text)).errors, `${method} ${template} ${status}`).toEqual([]);
}

export const send = (method: string, path: string, body?: unknown, token?: string): Promise<Response> =>
  request(path, {
    method,
    headers: {
      ...(body !== undefined && { "Content-Type": "application/json" }),
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

export const PASSWORD = `${SECRET_MARK} horse battery`;

/** Names that no other test uses. */
export const uniqueEmail = (): string => `u-${crypto.randomUUID()}@example.com`;
export const uniqueName = (): string => `n-${crypto.randomUUID()}`;

let admin: string | undefined;

export async function adminToken(): Promise<string> {
  admin ??= await tokenOf(settings.ADMIN_USERNAME ?? "", settings.ADMIN_PASSWORD ?? "");
  return admin;
}

export async function signedUp(): Promise<{ username: string; token: string }> {
  const username = uniqueEmail();
  expect((await postJson("/api/v1/users/signup", { username, password: PASSWORD })).status).toBe(200);
  return { username, token: await tokenOf(username, PASSWORD) };
}

export async function newAgent(configuration: object = {}): Promise<{ apId: string; token: string }> {
  const apId = uniqueName();
  const body = { ap_id: apId, password: PASSWORD, configuration };
  expect((await send("POST", "/api/v1/agents/", body, await adminToken())).status).toBe(200);
  return { apId, token: await tokenOf(apId, PASSWORD, "agent") };
}

export async function newApp(permissions: object = {}): Promise<{ appName: string; token: string }> {
  const appName = uniqueName();
  const body = { app_name: appName, api_key: PASSWORD, permissions };
  expect((await send("POST", "/api/v1/third_party_apps/", body, await adminToken())).status).toBe(200);
  return { appName, token: await tokenOf(appName, PASSWORD, "third_party_app") };
}

const { ASSETS, AGENT_SHARD, JOB_STREAM, PUBLISHER, LEDGER } = env;

/** Another Worker's app, with some settings changed and, where given, other bindings. */
export const appWith = (changes: Record<string, string>, bindings: Partial<Bindings> = {}) =>
  createApp(
    createServices(parseEnv({ ...env, ...changes }), {
      ASSETS,
      AGENT_SHARD,
      JOB_STREAM,
      PUBLISHER,
      LEDGER,
      ...bindings,
    }),
  );
