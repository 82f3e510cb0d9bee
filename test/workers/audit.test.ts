import { waitUntil } from "cloudflare:workers";
import { gt } from "drizzle-orm";
import { describe, expect, it } from "vitest";
import { forgetOldEntries } from "../../src/accounts/audit-retention.ts";
import { createAccountChanges } from "../../src/accounts/changes.ts";
import { createDatabase } from "../../src/accounts/database.ts";
import { audit } from "../../src/accounts/tables.ts";
import { adminToken, PASSWORD, send, settings, signedUp, uniqueEmail, uniqueName } from "./support.ts";

interface Entry {
  id: number;
  at: string;
  request_id: string;
  actor: string;
  action: string;
  object: string;
}

const trail = async (query: string) =>
  (await (await send("GET", `/api/v1/audit/?${query}`, undefined, await adminToken())).json()) as Entry[];
const told = (entries: Entry[]) => entries.map(({ actor, action, object }) => [actor, action, object]);

describe("the audit trail", () => {
  const admin = `admin:${settings.ADMIN_USERNAME}`;

  it("tells who did what to an account, newest first, with the request that did it", async () => {
    const token = await adminToken();
    const username = uniqueEmail();
    const path = `/api/v1/users/${encodeURIComponent(username)}`;
    const created = await send("POST", "/api/v1/users/", { username, password: PASSWORD, roles: ["user"] }, token);
    await send("PUT", path, { password: PASSWORD }, token);
    await send("PUT", path, { roles: ["user", "admin"], password: PASSWORD }, token);
    await send("PUT", path, { roles: null }, token);
    await send("DELETE", path, undefined, token);
    await send("DELETE", path, undefined, token);
    const entries = await trail(`object=${encodeURIComponent(`user:${username}`)}`);
    expect(told(entries)).toEqual([
      [admin, "delete", `user:${username}`],
      [admin, "change password and change roles", `user:${username}`],
      [admin, "change password", `user:${username}`],
      [admin, "create", `user:${username}`],
    ]);
    expect(entries.at(-1)?.request_id).toBe(created.headers.get("X-Request-Id"));
  });

  it("tells of agents and apps too, and of those who act for themselves", async () => {
    const token = await adminToken();
    const name = uniqueName();
    await send("POST", "/api/v1/agents/", { ap_id: name, password: PASSWORD, configuration: {} }, token);
    await send("PUT", `/api/v1/agents/${name}`, { configuration: { a: 1 } }, token);
    await send("POST", "/api/v1/third_party_apps/", { app_name: name, api_key: PASSWORD, permissions: {} }, token);
    expect(told(await trail(`object=agent:${name}`)).map(([, action]) => action)).toEqual(["configure", "create"]);
    expect(told(await trail(`object=app:${name}`))).toEqual([[admin, "create", `app:${name}`]]);
    const { username, token: own } = await signedUp();
    await send("DELETE", `/api/v1/users/${encodeURIComponent(username)}`, undefined, own);
    expect(told(await trail(`object=${encodeURIComponent(`user:${username}`)}`))).toEqual([
      [`user:${username}`, "delete", `user:${username}`],
      ["anyone", "create", `user:${username}`],
    ]);
    expect(told(await trail(`actor=${encodeURIComponent(`user:${username}`)}`))).toHaveLength(1);
  });

  it("says nothing of what did not happen", async () => {
    const { username } = await signedUp();
    await send("POST", "/api/v1/users/", { username, password: PASSWORD, roles: ["admin"] }, await adminToken());
    expect(told(await trail(`object=${encodeURIComponent(`user:${username}`)}`))).toEqual([
      ["anyone", "create", `user:${username}`],
    ]);
  });

  it("comes in pages", async () => {
    const [first, second, third] = await trail("limit=3");
    expect(await trail(`limit=2&before=${first?.id}`)).toEqual([second, third]);
    expect((await send("GET", "/api/v1/audit/?limit=1001", undefined, await adminToken())).status).toBe(422);
  });

  it("lets go of old entries as new ones come in", async () => {
    const database = createDatabase({ url: settings.EMPTY_LIBSQL_URL ?? "" });
    const changes = createAccountChanges(database, () => waitUntil(forgetOldEntries(database, 10_000)));
    const { mark } = await changes.since(undefined);
    const entry = (object: string, ageMs: number) => ({
      ...{ object, at: new Date(Date.now() - ageMs) },
      ...{ requestId: "", actor: "console:", action: "create" },
    });
    const names = Array.from({ length: 600 }, () => uniqueName());
    const fresh = uniqueName();
    await database.insert(audit).values([...names.map((name) => entry(name, 11_000)), entry(fresh, 0)]);
    const left = async () => {
      await changes.since(mark);
      const rows = await database.select({ object: audit.object }).from(audit).where(gt(audit.id, mark));
      return rows.map(({ object }) => object);
    };
    await expect.poll(left).toEqual([fresh]);
    await database.delete(audit).where(gt(audit.id, mark));
  });
});
