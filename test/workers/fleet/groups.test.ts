import { env } from "cloudflare:test";
import { sql } from "drizzle-orm";
import { describe, expect, it } from "vitest";
import type { StoredGrant } from "../../../src/accounts/account-tables.ts";
import { createAppStore } from "../../../src/accounts/app-store.ts";
import { createGroupStore } from "../../../src/accounts/group-store.ts";
import { createUserStore } from "../../../src/accounts/user-store.ts";
import { parseEnv } from "../../../src/env.ts";
import { createDatabase } from "../../../src/storage/libsql.ts";
import { adminToken, newApp, PASSWORD, send, settings, signedUp, tokenOf, uniqueName } from "../support.ts";
import { itemsOf, newAgents, newSite } from "./requests.ts";

const database = createDatabase({ url: parseEnv(env).LIBSQL_URL });
const BY = { kind: "console", name: "test", requestId: "" } as const;

const pathOf = (name: string): string => `/api/v1/groups/${name}`;
const put = async (name: string, body: object): Promise<Response> =>
  await send("PUT", pathOf(name), body, await adminToken());
const get = (name: string, token: string): Promise<Response> => send("GET", pathOf(name), undefined, token);
const newGroup = async (selector: string): Promise<string> => {
  const name = uniqueName();
  expect((await put(name, { selector })).status).toBe(200);
  return name;
};
const auditOf = async (object: string): Promise<{ action: string; detail: unknown }[]> => {
  const path = `/api/v1/audit/?object=${encodeURIComponent(object)}`;
  return (await (await send("GET", path, undefined, await adminToken())).json()) as {
    action: string;
    detail: unknown;
  }[];
};
/** Creates an app with grants and a token. */
const limitedApp = async (grants: StoredGrant[]) => {
  const { appName } = await newApp();
  const apps = createAppStore(database);
  await apps.update((await apps.find(appName)) ?? expect.unreachable(), { grants }, BY);
  return { appName, token: await tokenOf(appName, PASSWORD, "third_party_app") };
};
const listed = async (token: string): Promise<string[]> => {
  const groups = (await (await send("GET", "/api/v1/groups/", undefined, token)).json()) as { name: string }[];
  return groups.map(({ name }) => name);
};

describe("a group", () => {
  it("is created, replaced, read, listed and deleted by an administrator, and audited", async () => {
    const name = uniqueName();
    const first = { name, selector: "site=uk/*", description: "" };
    expect(await (await put(name, { selector: "site=uk/*" })).json()).toEqual(first);
    const second = { name, selector: "site=uk/*,!retired", description: "The United Kingdom" };
    expect(await (await put(name, second)).json()).toEqual(second);
    await put(name, second);
    expect(await (await get(name, await adminToken())).json()).toEqual(second);
    expect(await listed(await adminToken())).toContain(name);
    const remove = async () => await send("DELETE", pathOf(name), undefined, await adminToken());
    expect(await (await remove()).json()).toEqual({ status: "success", detail: "Group deleted" });
    expect((await remove()).status).toBe(404);
    expect((await get(name, await adminToken())).status).toBe(404);
    const entries = await auditOf(`group:${name}`);
    expect(entries.map(({ action }) => action)).toEqual(["delete", "change", "create"]);
    expect(entries[1]?.detail).toEqual({ selector: second.selector, description: second.description });
  });

  it.each([
    [{ selector: "@other" }, ["body", "selector"], "a group cannot refer to groups"],
    [{ selector: "site=" }, ["body", "selector"], "A label value expected at position 5"],
    [{}, ["body", "selector"], "Field required"],
    [{ selector: "", description: "x".repeat(501) }, ["body", "description"], "at most 500 characters"],
    [{ selector: "", description: "\ud94a" }, ["body", "description"], "lone surrogate"],
  ])("cannot be %j", async (body, loc, msg) => {
    expect(await itemsOf(await put(uniqueName(), body))).toMatchObject([{ loc, msg: expect.stringContaining(msg) }]);
  });

  it("needs a name that a selector can refer to", async () => {
    expect(await itemsOf(await put("a%20b", { selector: "" }))).toMatchObject([{ loc: ["path", "name"] }]);
  });

  it("is visible to callers that see all agents, and to those whose grants name it", async () => {
    const [named, other] = [await newGroup("site=a"), await newGroup("site=b")];
    const limits: StoredGrant[] = [{ role: "viewer", selector: `floor=1, @ ${named}` }];
    const all = [await signedUp(), await signedUp([{ role: "viewer", selector: "" }]), await newApp()];
    for (const { token } of all) {
      expect(await listed(token)).toEqual(expect.arrayContaining([named, other]));
      expect((await get(other, token)).status).toBe(200);
    }
    for (const { token } of [await signedUp(limits), await limitedApp(limits)]) {
      expect(await listed(token)).toEqual([named]);
      expect((await get(named, token)).status).toBe(200);
      const [hidden, absent] = [await get(other, token), await get(uniqueName(), token)];
      expect([hidden.status, absent.status]).toEqual([404, 404]);
      expect(await hidden.text()).toBe(await absent.text());
    }
    expect(await listed((await newApp({ ap_ids: ["x"] })).token)).toEqual([]);
  });
});

describe("the store of groups", () => {
  it("has at most 1,000 groups, and replaces existing ones beyond that", async () => {
    const other = createDatabase({ url: settings.EMPTY_LIBSQL_URL ?? "" });
    const store = createGroupStore(other);
    await other.run(
      sql`insert into groups (name, selector, description, updated_at)
          with recursive n(i) as (select 1 union all select i + 1 from n where i < 1000) select 'g' || i, '', '', 0 from n`,
    );
    try {
      const group = { name: "new", selector: "site=a", description: "" };
      await expect(store.save(group, BY)).rejects.toThrow("There are 1,000 groups, which is the limit");
      await store.save({ ...group, name: "g7" }, BY);
      expect(await store.find("g7")).toMatchObject({ selector: "site=a" });
      expect(await store.find("new")).toBeUndefined();
    } finally {
      await other.run(sql`delete from groups`);
    }
  });
});

describe("a group that grants refer to", () => {
  it("cannot be deleted", async () => {
    const name = await newGroup("site=a");
    const user = await signedUp([{ role: "viewer", selector: `!retired,@${name}` }]);
    await signedUp([{ role: "viewer", selector: `@${name}-2` }]);
    const response = await send("DELETE", pathOf(name), undefined, await adminToken());
    expect(response.status).toBe(409);
    const detail = `The grants of 1 account refer to this group: user:${user.username}`;
    expect(await response.json()).toEqual({ detail });
    await createUserStore(database).update(user.username, { grants: [] }, BY);
    expect((await send("DELETE", pathOf(name), undefined, await adminToken())).status).toBe(200);
  });

  it("invalidates the tokens of these accounts if its selector changes", async () => {
    const [from, to] = [newSite(), newSite()];
    const [a = "", b = ""] = await newAgents({ site: from }, { site: to });
    const name = await newGroup(`site=${from}`);
    const grants: StoredGrant[] = [{ role: "viewer", selector: `@${name}` }];
    const user = await signedUp(grants);
    const app = await limitedApp(grants);
    const [other, similar] = [await signedUp([]), await signedUp([{ role: "viewer", selector: `@${name}-2` }])];
    const read = async (apId: string, token: string) =>
      (await send("GET", `/api/v1/agents/${apId}`, undefined, token)).status;
    expect([await read(a, user.token), await read(b, user.token), await read(a, app.token)]).toEqual([200, 404, 200]);

    await put(name, { selector: `site=${from}`, description: "The same selector" });
    expect((await auditOf(`user:${user.username}`)).map(({ action }) => action)).toEqual(["create"]);
    await put(name, { selector: `site=${to}` });
    const changed = { action: "change grants", detail: { group: name, selector: `site=${to}` } };
    expect((await auditOf(`user:${user.username}`))[0]).toMatchObject(changed);
    expect((await auditOf(`app:${app.appName}`))[0]).toMatchObject(changed);
    for (const { token } of [user, app]) {
      await expect.poll(() => read(a, token), { timeout: 5_000, interval: 250 }).toBe(401);
    }
    for (const { token } of [other, similar]) expect(await read(a, token)).toBe(404);
    const again = await tokenOf(user.username, PASSWORD);
    expect([await read(a, again), await read(b, again)]).toEqual([404, 200]);
  });
});
