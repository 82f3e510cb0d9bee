import { env } from "cloudflare:test";
import { eq } from "drizzle-orm";
import { decodeJwt } from "jose";
import { describe, expect, it } from "vitest";
import { audit, groups } from "../../../src/accounts/account-tables.ts";
import { createUserStore } from "../../../src/accounts/user-store.ts";
import { parseEnv } from "../../../src/env.ts";
import { createDatabase } from "../../../src/storage/libsql.ts";
import {
  adminToken,
  appWith,
  bearer,
  newAgent,
  newApp,
  PASSWORD,
  request,
  send,
  signedUp,
  tokenOf,
  uniqueEmail,
  uniqueName,
} from "../support.ts";

const config = parseEnv(env);
const database = createDatabase({ url: config.LIBSQL_URL });

const pathOf = (username: string) => `/api/v1/users/${encodeURIComponent(username)}/grants`;
const change = async (path: string, grants: unknown) => await send("PUT", path, { grants }, await adminToken());
const read = async (path: string, token: string): Promise<unknown> =>
  await (await send("GET", path, undefined, token)).json();
const itemsOf = async (response: Response): Promise<unknown> => {
  expect(response.status).toBe(422);
  return ((await response.json()) as { detail: unknown }).detail;
};
const newGroup = async (selector: string): Promise<string> => {
  const name = uniqueName();
  await database.insert(groups).values({ name, selector, description: "", updatedAt: new Date() });
  return name;
};
const visible = async (token: string, apId: string) =>
  (await send("GET", `/api/v1/agents/${apId}`, undefined, token)).status;

describe("the grants of a user", () => {
  it("are null at first, and are read by the user and by administrators", async () => {
    const { username, token } = await signedUp();
    expect(await read(pathOf(username), token)).toEqual({ grants: null });
    const grants = [{ role: "viewer", selector: "site=uk/*" }];
    const response = await change(pathOf(username), grants);
    expect([response.status, await response.json()]).toEqual([200, { grants }]);
    expect(await read(pathOf(username), await adminToken())).toEqual({ grants });
  });

  it("end earlier tokens within five seconds, and decide what later ones see", async () => {
    const [{ username, token }, agent, other] = await Promise.all([
      signedUp(),
      newAgent({}, { site: "uk/bristol" }),
      newAgent({}, { site: "uk/bath" }),
    ]);
    expect(await visible(token, other.apId)).toBe(200);
    await change(pathOf(username), [{ role: "manager", selector: "site=uk/bristol" }]);
    await expect.poll(() => visible(token, other.apId), { timeout: 5_000, interval: 100 }).toBe(401);
    const next = await tokenOf(username, PASSWORD);
    expect([await visible(next, agent.apId), await visible(next, other.apId)]).toEqual([200, 404]);
    expect(await (await request("/api/v1/users/me", { headers: bearer(next) })).json()).toMatchObject({
      scopes: ["agents:read", "agents:manage", "telemetry:read", "commands:send", "emulator:run"],
    });
    expect(await (await change(pathOf(username), null)).json()).toEqual({ grants: null });
    expect(await visible(await tokenOf(username, PASSWORD), other.apId)).toBe(200);
  });

  it("follow a changed group within five seconds", async () => {
    const [agent, group] = await Promise.all([newAgent({}, { site: "a" }), newGroup("site=a")]);
    const { token } = await signedUp([{ role: "viewer", selector: `@${group}` }]);
    expect(await visible(token, agent.apId)).toBe(200);
    await database.update(groups).set({ selector: "site=b" }).where(eq(groups.name, group));
    const entry = { at: new Date(), requestId: "", actor: "console:test", action: "save", object: `group:${group}` };
    await database.insert(audit).values(entry);
    await expect.poll(() => visible(token, agent.apId), { timeout: 5_000, interval: 100 }).toBe(404);
  });

  it("are audited with their new value", async () => {
    const { username } = await signedUp();
    const grants = [{ role: "operator", selector: "!retired" }];
    await change(pathOf(username), grants);
    const path = `/api/v1/audit/?object=${encodeURIComponent(`user:${username}`)}&limit=1`;
    expect(await read(path, await adminToken())).toMatchObject([{ action: "change grants", detail: { grants } }]);
  });

  it("are rejected with the position of each syntax error and each unknown group", async () => {
    const { username } = await signedUp();
    const group = await newGroup("site=a");
    const selectors = ["site=a,", "", `@${group}`, "a in (b"];
    const wrong = selectors.map((selector) => ({ role: "viewer", selector }));
    expect(await itemsOf(await change(pathOf(username), wrong))).toEqual([
      {
        loc: ["body", "grants", 0, "selector"],
        msg: "Value error, A label key, `!` or `@` expected at position 7",
        type: "selector_syntax",
      },
      {
        loc: ["body", "grants", 3, "selector"],
        msg: "Value error, `,` or `)` expected at position 7",
        type: "selector_syntax",
      },
    ]);
    const unknown = [`@${group}`, "site=a,@unknown"].map((selector) => ({ role: "viewer", selector }));
    expect(await itemsOf(await change(pathOf(username), unknown))).toEqual([
      {
        loc: ["body", "grants", 1, "selector"],
        msg: "Value error, there is no group 'unknown'",
        type: "unknown_group",
      },
    ]);
    expect((await change(pathOf(username), unknown.slice(0, 1))).status).toBe(200);
  });

  it.each([
    ["too many", Array.from({ length: 101 }, () => ({ role: "viewer", selector: "" })), ["body", "grants"]],
    [
      "too many label values in total",
      Array.from({ length: 21 }, () => ({
        role: "viewer",
        selector: `a in (${Array.from({ length: 100 }, (_, i) => i).join(",")})`,
      })),
      ["body", "grants"],
    ],
    ["an unknown role", [{ role: "admin", selector: "" }], ["body", "grants", 0, "role"]],
    ["no list", "all", ["body", "grants"]],
  ])("are rejected with 422: %s", async (_, grants, loc) => {
    const { username } = await signedUp();
    expect(await itemsOf(await change(pathOf(username), grants))).toMatchObject([{ loc }]);
  });

  it("of an unknown user do not exist", async () => {
    expect((await change(pathOf(uniqueEmail()), null)).status).toBe(404);
    expect((await send("GET", pathOf(uniqueEmail()), undefined, await adminToken())).status).toBe(404);
  });
});

describe("the grants of an app", () => {
  it("limit its tokens, and are read by the app", async () => {
    const { appName, token } = await newApp({ broker: true });
    const path = `/api/v1/third_party_apps/${appName}/grants`;
    expect(await read(path, token)).toEqual({ grants: null });
    const grants = [{ role: "viewer", selector: "site=a" }];
    expect(await (await change(path, grants)).json()).toEqual({ grants });
    const next = await tokenOf(appName, PASSWORD, "third_party_app");
    expect(await read(path, next)).toEqual({ grants });
    expect(decodeJwt<{ scope: string }>(next).scope.split(" ")).toEqual([
      "agents:read",
      "telemetry:read",
      "commands:send",
    ]);
    // A grant for all agents does not limit the app.
    await change(path, [{ role: "operator", selector: "" }]);
    const unlimited = decodeJwt<{ scope: string }>(await tokenOf(appName, PASSWORD, "third_party_app"));
    expect(unlimited.scope.split(" ")).toContain("broker:use");
    expect((await change(`/api/v1/third_party_apps/${uniqueName()}/grants`, null)).status).toBe(404);
  });
});

describe("the grants of a new user", () => {
  const signUp = async (NEW_USERS: string) => {
    const username = uniqueEmail();
    const response = await appWith({ NEW_USERS }).request("/api/v1/users/signup", {
      method: "POST",
      headers: { "Content-Type": "application/json" },
      body: JSON.stringify({ username, password: PASSWORD }),
    });
    expect(response.status).toBe(200);
    return (await createUserStore(database).find(username))?.grants;
  };

  it.each([
    ["", []],
    ["none", []],
    ["operator", null],
    ["operator:", null],
    ["viewer", [{ role: "viewer", selector: "" }]],
    ["manager:site=uk/*,!retired", [{ role: "manager", selector: "site=uk/*,!retired" }]],
  ])("are those of the setting NEW_USERS=%s", async (setting, grants) => {
    expect(await signUp(setting)).toEqual(grants);
  });

  it.each(["admin", "viewers", "viewer:site=", "viewer site=uk"])("must be valid: NEW_USERS=%s", (NEW_USERS) => {
    expect(() => appWith({ NEW_USERS })).toThrow("The setting NEW_USERS is not a grant, as in viewer:site=uk/*");
  });

  it("are null for a user whom an administrator creates", async () => {
    const username = uniqueEmail();
    const app = appWith({ NEW_USERS: "none" });
    const body = JSON.stringify({ username, password: PASSWORD, roles: ["user"] });
    const headers = { "Content-Type": "application/json", ...bearer(await adminToken()) };
    expect((await app.request("/api/v1/users/", { method: "POST", headers, body })).status).toBe(200);
    expect((await createUserStore(database).find(username))?.grants).toBeNull();
  });
});
