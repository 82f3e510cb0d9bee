import { describe, expect, it } from "vitest";
import { createAgentStore } from "../../../src/accounts/agents/agent-store.ts";
import { createEncryptor } from "../../../src/auth/encryptor.ts";
import { createSecretHasher, randomSecret } from "../../../src/auth/secrets.ts";
import { createDatabase } from "../../../src/storage/libsql.ts";
import { adminToken, logIn, newAgent, newApp, PASSWORD, send, settings, tokenOf, uniqueName } from "../support.ts";

const agentAt = (apId: string) => `/api/v1/agents/${apId}`;
const appAt = (appName: string) => `/api/v1/third_party_apps/${appName}`;
const create = async (configuration: unknown) =>
  await send("POST", "/api/v1/agents/", { ap_id: uniqueName(), password: PASSWORD, configuration }, await adminToken());
const database = () => createDatabase({ url: settings.LIBSQL_URL ?? "" });

describe("agents", () => {
  it("are created, read, updated and deleted, and never show their password", async () => {
    const token = await adminToken();
    const ap_id = uniqueName();
    const record = { id: expect.stringMatching(/^[0-9a-f-]{36}$/), ap_id, configuration: { vendor: "x" } };
    const body = { ap_id, password: PASSWORD, configuration: { vendor: "x" } };
    expect(await (await send("POST", "/api/v1/agents/", body, token)).json()).toEqual(record);
    const twice = await send("POST", "/api/v1/agents/", body, token);
    expect([twice.status, await twice.json()]).toEqual([409, { detail: "Agent already exists" }]);
    expect(await (await send("GET", agentAt(ap_id), undefined, token)).json()).toEqual(record);
    const updated = await send("PUT", agentAt(ap_id), { configuration: { model: 7 } }, token);
    expect(await updated.json()).toEqual({ ...record, configuration: { model: 7 } });
    expect(await (await send("PUT", agentAt(ap_id), { configuration: null }, token)).json()).toMatchObject({
      configuration: { model: 7 },
    });
    const deleted = await send("DELETE", agentAt(ap_id), undefined, token);
    expect(await deleted.json()).toEqual({ status: "success", detail: "Agent deleted" });
    expect((await send("GET", agentAt(ap_id), undefined, token)).status).toBe(404);
    expect((await send("DELETE", agentAt(ap_id), undefined, token)).status).toBe(404);
  });

  it("are marked as onboard at their first login", async () => {
    const ap_id = uniqueName();
    await send("POST", "/api/v1/agents/", { ap_id, password: PASSWORD, configuration: {} }, await adminToken());
    const store = createAgentStore(database());
    expect((await store.find(ap_id))?.onboard).toBe(false);
    expect((await logIn(ap_id, `${PASSWORD}!`, "agent")).status).toBe(401);
    expect((await store.find(ap_id))?.onboard).toBe(false);
    await tokenOf(ap_id, PASSWORD, "agent");
    expect((await store.find(ap_id))?.onboard).toBe(true);
  });

  it.each([
    [{ lat: "51.4545", lon: -2.5879 }],
    [{ latitude: 51.4545, lng: "-2.5879" }],
    [{ lat: 51.4545, long: -2.5879, altitude: 11 }],
    [{ latitude: " 51.4545 ", longitude: -2.5879, lat: 0 }],
  ])("store every form of geolocation in the same shape: %j", async (geolocation) => {
    const agent = (await (await create({ geolocation, kept: true })).json()) as { configuration: object };
    expect(agent.configuration).toEqual({ geolocation: { latitude: 51.4545, longitude: -2.5879 }, kept: true });
  });

  it.each([
    [{ lat: 91, lon: 0 }, ["latitude"], "less_than_equal"],
    [{ lat: 0, lon: -180.5 }, ["longitude"], "greater_than_equal"],
    [{ lat: 0 }, ["longitude"], "missing"],
    [{ lat: "north", lon: 0 }, ["latitude"], "float_parsing"],
    ["51,2", [], "model_attributes_type"],
    [null, [], "model_attributes_type"],
  ])("are rejected with 422 for the geolocation %j", async (geolocation, where, type) => {
    const response = await create({ geolocation });
    expect(response.status).toBe(422);
    expect(await response.json()).toMatchObject({
      detail: [{ loc: ["body", "configuration", "geolocation", ...where], type }],
    });
  });

  it.each([["x"], [1], [true], [[]]])("are rejected with 422 for the configuration %j", async (configuration) => {
    const response = await create(configuration as object);
    expect(response.status).toBe(422);
    const fieldError = { msg: "Input should be a valid dictionary", type: "dict_type" };
    expect(await response.json()).toEqual({ detail: [{ loc: ["body", "configuration"], ...fieldError }] });
    const { apId, token } = await newAgent();
    expect(await (await send("PUT", agentAt(apId), { configuration }, token)).json()).toEqual({
      detail: [{ loc: ["body", "configuration"], ...fieldError }],
    });
  });

  it.each(["", ".", "..", "a/b", "a b", "a+", "#", "ä", "x".repeat(65)])(
    "are rejected with 422 for the name %j",
    async (ap_id) => {
      const response = await send(
        "POST",
        "/api/v1/agents/",
        { ap_id, password: PASSWORD, configuration: {} },
        await adminToken(),
      );
      expect(response.status).toBe(422);
      expect(await response.json()).toMatchObject({ detail: [{ loc: ["body", "ap_id"] }] });
    },
  );

  it("register themselves with the enrolment token, which allows nothing else", async () => {
    const enrolment = settings.ENROLMENT_TOKEN ?? "";
    const body = { ap_id: uniqueName(), password: PASSWORD, configuration: {} };
    expect((await send("POST", "/api/v1/agents/public", body, `${enrolment}x`)).status).toBe(401);
    expect((await send("POST", "/api/v1/agents/public", body, enrolment)).status).toBe(200);
    expect((await logIn(body.ap_id, PASSWORD, "agent")).status).toBe(200);
    for (const path of ["/api/v1/agents/", "/api/v1/users/public"]) {
      const response = await send("POST", path, { ...body, ap_id: uniqueName() }, enrolment);
      expect(response.status).toBe(403);
    }
  });

  it("with a generated credential log in with it, until a password is set", async () => {
    const generated = createSecretHasher([settings.CREDENTIAL_PEPPER ?? ""]);
    const secret = randomSecret();
    const apId = uniqueName();
    const credential = await generated.hash(secret);
    const by = { kind: "console", name: "test", requestId: "" } as const;
    await createAgentStore(database()).insert({ apId, credentialKind: "hmac", credential, configuration: {} }, by);
    expect((await logIn(apId, `${secret}x`, "agent")).status).toBe(401);
    expect((await logIn(apId, credential, "agent")).status).toBe(401);
    expect((await logIn(apId, secret, "agent")).status).toBe(200);
    expect((await send("PUT", agentAt(apId), { password: PASSWORD }, await adminToken())).status).toBe(200);
    expect((await logIn(apId, secret, "agent")).status).toBe(401);
    expect((await logIn(apId, PASSWORD, "agent")).status).toBe(200);
  });

  it("set a new password only with a token that has all scopes", async () => {
    const { apId, token } = await newAgent();
    const narrowed = await tokenOf(apId, PASSWORD, "agent", "telemetry:write");
    expect((await send("PUT", agentAt(apId), { configuration: { a: 1 } }, narrowed)).status).toBe(200);
    expect((await send("PUT", agentAt(apId), { password: PASSWORD }, narrowed)).status).toBe(403);
    expect((await send("PUT", agentAt(apId), { password: PASSWORD }, token)).status).toBe(200);
  });

  it("can log in a hundred at once", async () => {
    const generated = createSecretHasher([settings.CREDENTIAL_PEPPER ?? ""]);
    const store = createAgentStore(database());
    const by = { kind: "console", name: "test", requestId: "" } as const;
    const secret = randomSecret();
    const credential = await generated.hash(secret);
    const names = Array.from({ length: 100 }, uniqueName);
    await Promise.all(
      names.map((apId) => store.insert({ apId, credentialKind: "hmac", credential, configuration: {} }, by)),
    );
    const responses = await Promise.all(names.map((apId) => logIn(apId, secret, "agent")));
    expect(responses.map(({ status }) => status)).toEqual(names.map(() => 200));
  });
});

describe("third-party apps", () => {
  it("are created, read, updated and deleted, and show their key", async () => {
    const token = await adminToken();
    const app_name = uniqueName();
    const permissions = { data: false, ap_ids: ["a"], note: { any: "thing" } };
    const record = { id: expect.any(String), app_name, api_key: PASSWORD, permissions };
    const body = { app_name, api_key: PASSWORD, permissions };
    expect(await (await send("POST", "/api/v1/third_party_apps/", body, token)).json()).toEqual(record);
    expect((await send("POST", "/api/v1/third_party_apps/", body, token)).status).toBe(409);
    expect(await (await send("GET", appAt(app_name), undefined, token)).json()).toEqual(record);
    expect(await (await send("GET", appAt(""), undefined, token)).json()).toContainEqual(record);
    const rekeyed = await send("PUT", appAt(app_name), { api_key: `${PASSWORD} 2`, permissions: null }, token);
    expect(await rekeyed.json()).toEqual({ ...record, api_key: `${PASSWORD} 2` });
    expect((await logIn(app_name, PASSWORD, "third_party_app")).status).toBe(401);
    expect((await logIn(app_name, `${PASSWORD} 2`, "third_party_app")).status).toBe(200);
    const deleted = await send("DELETE", appAt(app_name), undefined, token);
    expect(await deleted.json()).toEqual({ status: "success", detail: "Third-party app deleted" });
    expect((await send("GET", appAt(app_name), undefined, token)).status).toBe(404);
  });

  it("are listed by name, in pages with limit and offset", async () => {
    const token = await adminToken();
    await Promise.all([newApp(), newApp(), newApp()]);
    const list = async (query = "") =>
      (await (await send("GET", appAt(query), undefined, token)).json()) as { app_name: string }[];
    const all = await list();
    expect(all.map(({ app_name }) => app_name)).toEqual(all.map(({ app_name }) => app_name).toSorted());
    // Other tests create apps at the same time.
    const isPage = async (query: string, from: number, to?: number) =>
      JSON.stringify(await list(query)) === JSON.stringify((await list()).slice(from, to));
    await expect.poll(async () => await isPage("?limit=2&offset=1", 1, 3)).toBe(true);
    await expect.poll(async () => await isPage("?offset=1", 1)).toBe(true);
    expect((await send("GET", appAt("?limit=0"), undefined, token)).status).toBe(422);
  });

  it.each([
    ["all", [], "dict_type"],
    [{ agents: "yes" }, ["agents"], "bool_type"],
    [{ ap_ids: "a" }, ["ap_ids"], "list_type"],
    [{ ap_ids: [1] }, ["ap_ids", 0], "string_type"],
  ])("are rejected with 422 for the permissions %j", async (permissions, where, type) => {
    const body = { app_name: uniqueName(), api_key: PASSWORD, permissions };
    const response = await send("POST", "/api/v1/third_party_apps/", body, await adminToken());
    expect(response.status).toBe(422);
    expect(await response.json()).toMatchObject({ detail: [{ loc: ["body", "permissions", ...where], type }] });
  });

  it.each([
    [{}, "agents:read telemetry:read commands:send emulator:run"],
    [{ agents: false, callbacks: true }, "telemetry:read commands:send emulator:run callbacks:post"],
    [{ agents: false, data: false, commands: false, emulator: false }, ""],
  ])("with the permissions %j get the scopes %j", async (permissions, scope) => {
    const { token } = await newApp(permissions);
    expect((JSON.parse(atob(token.split(".")[1] ?? "")) as { scope: string }).scope).toBe(scope);
  });

  it("need a new token after their permissions change", async () => {
    const { appName, token } = await newApp();
    const { apId } = await newAgent();
    const read = async () => (await send("GET", agentAt(apId), undefined, token)).status;
    expect(await read()).toBe(200);
    await send("PUT", appAt(appName), { permissions: { agents: false } }, await adminToken());
    await expect.poll(read, { timeout: 6_000, interval: 200 }).toBe(401);
  });

  it("do not show their key to a token with fewer scopes", async () => {
    const { appName } = await newApp();
    const narrowed = await tokenOf(appName, PASSWORD, "third_party_app", "agents:read");
    expect((await send("GET", appAt(appName), undefined, narrowed)).status).toBe(403);
  });

  it("have keys that are encrypted for one app only", async () => {
    const apiKeys = createEncryptor([settings.ENCRYPTION_KEY ?? ""]);
    const sealed = await apiKeys.seal("key", "one app");
    expect(sealed).not.toContain("key");
    expect(await apiKeys.open(sealed, "one app")).toBe("key");
    await expect(apiKeys.open(sealed, "another")).rejects.toThrow();
  });
});
