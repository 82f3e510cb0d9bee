import { createExecutionContext } from "cloudflare:test";
import { describe, expect, it, vi } from "vitest";
import {
  adminToken,
  appWith,
  logIn,
  PASSWORD,
  postJson,
  request,
  send,
  settings,
  signedUp,
  tokenOf,
  uniqueEmail,
} from "../support.ts";

const USER_SCOPES = ["agents:read", "telemetry:read", "commands:send", "emulator:run"];
const OTHER_PASSWORD = `${PASSWORD} too`;
const at = (username: string) => `/api/v1/users/${encodeURIComponent(username)}`;

async function created(roles: string[]): Promise<string> {
  const username = uniqueEmail();
  const response = await send("POST", "/api/v1/users/", { username, password: PASSWORD, roles }, await adminToken());
  expect(response.status).toBe(200);
  return username;
}

describe("users", () => {
  it("are created, read, listed and deleted by an administrator", async () => {
    const token = await adminToken();
    const username = uniqueEmail();
    const record = { username, roles: "user", scopes: USER_SCOPES };
    const response = await send("POST", "/api/v1/users/", { username, password: PASSWORD, roles: ["user"] }, token);
    expect(await response.json()).toEqual(record);
    expect(await (await send("GET", at(username), undefined, token)).json()).toEqual(record);
    expect(await (await send("GET", "/api/v1/users/", undefined, token)).json()).toContainEqual(record);
    const deleted = await send("DELETE", at(username), undefined, token);
    expect(await deleted.json()).toEqual({ status: "success", detail: "User deleted" });
    expect((await send("GET", at(username), undefined, token)).status).toBe(404);
    expect((await logIn(username, PASSWORD)).status).toBe(401);
  });

  it("are found by name regardless of case", async () => {
    const username = await created(["user"]);
    expect((await send("GET", at(username.toUpperCase()), undefined, await adminToken())).status).toBe(200);
  });

  it("are listed in pages with limit and offset", async () => {
    const token = await adminToken();
    await created(["user"]);
    const all = (await (await send("GET", "/api/v1/users/", undefined, token)).json()) as unknown[];
    const page = (await (await send("GET", "/api/v1/users/?limit=1&offset=1", undefined, token)).json()) as unknown[];
    expect(page).toEqual(all.slice(1, 2));
    expect(await (await send("GET", "/api/v1/users/?offset=1", undefined, token)).json()).toEqual(all.slice(1));
    expect((await send("GET", "/api/v1/users/?limit=0", undefined, token)).status).toBe(422);
  });

  it("have several roles, joined with a comma", async () => {
    const username = await created(["admin", "user", "admin"]);
    expect(await (await send("GET", at(username), undefined, await adminToken())).json()).toMatchObject({
      roles: "admin,user",
    });
  });

  it.each([
    [["root"], { loc: ["body", "roles", 0], type: "literal_error", msg: "Input should be 'admin' or 'user'" }],
    [[], { loc: ["body", "roles"], type: "too_short" }],
    ["user", { loc: ["body", "roles"], type: "list_type" }],
  ])("are rejected with 422 for invalid roles: %j", async (roles, fieldError) => {
    const body = { username: uniqueEmail(), password: PASSWORD, roles };
    const response = await send("POST", "/api/v1/users/", body, await adminToken());
    expect(response.status).toBe(422);
    expect(await response.json()).toMatchObject({ detail: [fieldError] });
  });

  it("keep the values that an update omits or sets to null", async () => {
    const username = await created(["user"]);
    for (const body of [{}, { password: null, roles: null }, { other: 1 }]) {
      expect(await (await send("PUT", at(username), body, await adminToken())).json()).toMatchObject({ roles: "user" });
    }
    expect((await logIn(username, PASSWORD)).status).toBe(200);
  });

  it("can change their own password, but not their own roles", async () => {
    const { username, token } = await signedUp();
    expect((await send("PUT", at(username), { roles: ["admin"] }, token)).status).toBe(403);
    expect((await send("PUT", at(username), { password: OTHER_PASSWORD }, token)).status).toBe(200);
    expect((await logIn(username, PASSWORD)).status).toBe(401);
    expect((await logIn(username, OTHER_PASSWORD)).status).toBe(200);
  });

  it("are rejected with 422 for too many roles", async () => {
    const { username, token } = await signedUp();
    for (const roles of [Array.from({ length: 500_000 }, () => 1), Array.from({ length: 11 }, () => "user")]) {
      const response = await send("PUT", at(username), { roles }, token);
      expect(response.status).toBe(422);
      expect((await response.text()).length).toBeLessThan(20_000);
    }
  });

  it("cannot change or delete themselves with a token that has fewer scopes", async () => {
    const { username } = await signedUp();
    const narrowed = await tokenOf(username, PASSWORD, "user", "agents:read");
    expect((await send("GET", at(username), undefined, narrowed)).status).toBe(200);
    expect((await send("PUT", at(username), { password: OTHER_PASSWORD }, narrowed)).status).toBe(403);
    expect((await send("DELETE", at(username), undefined, narrowed)).status).toBe(403);
  });

  it("are created once by twenty concurrent sign-ups under one name, and the others get 409", async () => {
    const body = { username: uniqueEmail(), password: PASSWORD };
    const responses = await Promise.all(Array.from({ length: 20 }, () => postJson("/api/v1/users/signup", body)));
    const statuses = responses.map(({ status }) => status).toSorted();
    expect(statuses).toEqual([200, ...Array.from({ length: 19 }, () => 409)]);
  });

  it("are all created by twenty concurrent sign-ups under twenty names", async () => {
    const responses = await Promise.all(
      Array.from({ length: 20 }, () =>
        postJson("/api/v1/users/signup", { username: uniqueEmail(), password: PASSWORD }),
      ),
    );
    expect(responses.map(({ status }) => status)).toEqual(Array.from({ length: 20 }, () => 200));
  });
});

describe("the tokens of a user", () => {
  const statusOf = async (token: string) => (await send("GET", "/api/v1/users/me", undefined, token)).status;
  /** Expects a token to be invalid within five seconds, plus the time of a request. */
  const expectInvalid = async (token: string) =>
    await expect.poll(() => statusOf(token), { timeout: 6_000, interval: 200 }).toBe(401);

  it("are invalid after a new password, new roles or deletion, and valid for a later account of that name", async () => {
    const [first, second, third] = [await signedUp(), await signedUp(), await signedUp()];
    const admin = await adminToken();
    for (const { token } of [first, second, third]) expect(await statusOf(token)).toBe(200);
    await send("PUT", at(first.username), { password: OTHER_PASSWORD }, first.token);
    await send("PUT", at(second.username), { roles: ["user", "admin"] }, admin);
    await send("DELETE", at(third.username), undefined, admin);
    await postJson("/api/v1/users/signup", { username: third.username, password: PASSWORD });
    await Promise.all([expectInvalid(first.token), expectInvalid(second.token), expectInvalid(third.token)]);
    expect(await statusOf(await tokenOf(third.username, PASSWORD))).toBe(200);
  });
});

describe("with an empty database", () => {
  // One test for both rules: the database has no users, then its first administrator, who is also the last.
  it("the setup token creates only the first user, and the last administrator cannot be removed", async () => {
    const app = appWith({ LIBSQL_URL: settings.EMPTY_LIBSQL_URL ?? "" });
    const call = (method: string, path: string, token: string, body?: object) =>
      app.request(path, {
        method,
        headers: { Authorization: `Bearer ${token}`, "Content-Type": "application/json" },
        ...(body !== undefined && { body: JSON.stringify(body) }),
      });
    const setup = settings.SETUP_TOKEN ?? "";
    const first = { username: uniqueEmail(), password: PASSWORD, roles: ["admin"] };
    expect((await call("POST", "/api/v1/users/public", `${setup}x`, first)).status).toBe(401);
    expect((await call("GET", "/api/v1/users/", setup)).status).toBe(403);
    const statuses = await Promise.all(
      [first, first, first].map(async (user) => (await call("POST", "/api/v1/users/public", setup, user)).status),
    );
    expect(statuses.toSorted()).toEqual([200, 403, 403]);

    const body = new URLSearchParams({ username: first.username, password: PASSWORD });
    const login = await app.request(
      "/api/v1/token/?login_type=user",
      { method: "POST", body },
      {},
      createExecutionContext(),
    );
    const { access_token: token } = (await login.json()) as { access_token: string };
    for (const conflict of [
      await call("DELETE", at(first.username), token),
      await call("PUT", at(first.username), token, { roles: ["user"] }),
    ]) {
      expect(conflict.status).toBe(409);
      expect(await conflict.json()).toEqual({ detail: "The last administrator cannot be removed" });
    }
    const second = { username: uniqueEmail(), password: PASSWORD, roles: ["admin"] };
    expect((await call("POST", "/api/v1/users/", token, second)).status).toBe(200);
    expect((await call("PUT", at(second.username), token, { roles: ["user"] })).status).toBe(200);
    expect((await call("PUT", at(first.username), token, { password: OTHER_PASSWORD })).status).toBe(200);
  });

  it("setup is rejected with 401 if no setup token is configured", async () => {
    const app = appWith({ LIBSQL_URL: settings.EMPTY_LIBSQL_URL ?? "", SETUP_TOKEN: "" });
    const headers = { Authorization: "Bearer " };
    expect((await app.request("/api/v1/users/public", { method: "POST", headers })).status).toBe(401);
  });
});

describe("signing up", () => {
  it.each(["closed", ""])(
    "is rejected with a reason if it is closed, which is the default: SIGNUP=%s",
    async (SIGNUP) => {
      const app = appWith({ SIGNUP });
      const headers = { "Content-Type": "application/json" };
      const body = JSON.stringify({ username: uniqueEmail(), password: PASSWORD });
      const signUp = await app.request("/api/v1/users/signup", { method: "POST", headers, body });
      expect([signUp.status, await signUp.json()]).toEqual([
        403,
        { detail: "Sign-up is closed. Ask an administrator for an account." },
      ]);
      expect(await (await app.request("/dashboard.json")).json()).toMatchObject({ sign_up: false });
    },
  );
});

describe("failed logins", () => {
  it("are always logged, with the name only if it is valid", async () => {
    const app = appWith({ LOG_REQUESTS: "failures" });
    const username = uniqueEmail();
    const lines = vi.spyOn(console, "log").mockImplementation(() => {});
    try {
      for (const name of [username, PASSWORD]) {
        const body = new URLSearchParams({ username: name, password: OTHER_PASSWORD });
        await app.request("/api/v1/token/?login_type=user", { method: "POST", body });
      }
      const logged = lines.mock.calls.map(([line]) => JSON.parse(String(line)) as Record<string, unknown>);
      expect(logged).toMatchObject([
        { level: "warn", message: "login failed", login_type: "user", name: username },
        { level: "warn", message: "login failed", login_type: "user" },
      ]);
      expect(logged[1]).not.toHaveProperty("name");
    } finally {
      lines.mockRestore();
    }
  });

  it("do not include successful ones, however many are concurrent", async () => {
    const { username } = await signedUp();
    const logins = await Promise.all(Array.from({ length: 25 }, async () => (await logIn(username, PASSWORD)).status));
    expect(new Set(logins)).toEqual(new Set([200]));
  });
});

describe("the literal me", () => {
  it("addresses the caller, whatever its scopes", async () => {
    const { username } = await signedUp();
    const token = await tokenOf(username, PASSWORD, "user", "nothing:known");
    expect(
      await (await request("/api/v1/users/me", { headers: { Authorization: `Bearer ${token}` } })).json(),
    ).toMatchObject({ username });
  });
});
