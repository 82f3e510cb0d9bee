import { describe, expect, it } from "vitest";
import {
  adminToken,
  logIn,
  newAgent,
  newApp,
  PASSWORD,
  send,
  settings,
  signedUp,
  uniqueEmail,
  uniqueName,
} from "../support.ts";
import { ADMIN, brief, eventsOf } from "./event-support.ts";

const put = async (path: string, body: object) => {
  expect((await send("PUT", path, body, await adminToken())).status).toBe(200);
};
const uniqueAddress = (): string => {
  const [a = 0, b = 0] = crypto.getRandomValues(new Uint16Array(2));
  return `2001:db8:${a.toString(16)}:${b.toString(16)}::1`;
};

describe("a change of an account", () => {
  it("is one event: creation, password, roles, grants, deletion", async () => {
    const [username, admin] = [uniqueEmail(), await adminToken()];
    const path = `/api/v1/users/${encodeURIComponent(username)}`;
    const grants = [{ role: "viewer", selector: "site=uk/*" }];
    const found = await eventsOf(username, async () => {
      await send("POST", "/api/v1/users/", { username, password: PASSWORD, roles: ["user"] }, admin);
      await put(path, { password: PASSWORD });
      await put(path, { roles: ["user"] });
      await put(`${path}/grants`, { grants });
      await put(`${path}/grants`, { grants: null });
      await send("DELETE", path, undefined, admin);
    });
    const account = `user:${username}`;
    const data = { account, action: "change grants" };
    expect(brief(found)).toEqual([
      { type: "account.created", actor: ADMIN, data: { account, action: "create" } },
      { type: "account.updated", actor: ADMIN, data: { account, action: "change password" } },
      { type: "account.updated", actor: ADMIN, data: { account, action: "change roles" } },
      { type: "grants.changed", actor: ADMIN, data: { ...data, grants } },
      { type: "grants.changed", actor: ADMIN, data: { ...data, grants: null } },
      { type: "account.deleted", actor: ADMIN, data: { account, action: "delete" } },
    ]);
    for (const event of found) expect([event.ap_id, event.labels]).toEqual([null, {}]);
  });

  it("is one event for an app, also if only the group of its grants changes", async () => {
    const [group, admin] = [uniqueName(), await adminToken()];
    const { appName } = await newApp();
    await put(`/api/v1/groups/${group}`, { selector: "site=a" });
    await put(`/api/v1/third_party_apps/${appName}/grants`, { grants: [{ role: "viewer", selector: `@${group}` }] });
    const found = await eventsOf(group, async () => await put(`/api/v1/groups/${group}`, { selector: "site=b" }));
    expect(brief(found)).toEqual([
      {
        type: "grants.changed",
        actor: ADMIN,
        data: { account: `app:${appName}`, action: "change grants", group, selector: "site=b" },
      },
      { type: "group.changed", actor: ADMIN, data: { group, action: "change", selector: "site=b" } },
    ]);
    const deleted = await eventsOf(appName, () =>
      send("DELETE", `/api/v1/third_party_apps/${appName}`, undefined, admin),
    );
    expect(deleted.map(({ type }) => type)).toEqual(["account.deleted"]);
  });

  it("is no event if the service rejects it", async () => {
    const { username } = await signedUp();
    const found = await eventsOf(username, async () => {
      const body = { username, password: PASSWORD, roles: ["user"] };
      expect((await send("POST", "/api/v1/users/", body, await adminToken())).status).toBe(409);
    });
    expect(found).toEqual([]);
  });

  it("is an event for enrolment tokens, with the first characters of the token only", async () => {
    const admin = await adminToken();
    const description = uniqueName();
    let [token, prefix] = ["", ""];
    const found = await eventsOf(
      () => prefix,
      async () => {
        const response = await send("POST", "/api/v1/enrolment_tokens/", { description }, admin);
        const created = (await response.json()) as { id: string; token: string; prefix: string };
        [token, prefix] = [created.token, created.prefix];
        await send("DELETE", `/api/v1/enrolment_tokens/${created.id}`, undefined, admin);
      },
    );
    expect(brief(found)).toEqual(
      ["create", "revoke"].map((action) => ({
        type: "enrolment_token.changed",
        actor: ADMIN,
        data: { token: prefix, action },
      })),
    );
    expect(JSON.stringify(found)).not.toContain(token);
  });
});

describe("failing logins", () => {
  const fail = async (count: number, username: string, type: "user" | "agent" | "third_party_app", address: string) => {
    await Promise.all(Array.from({ length: count }, () => logIn(username, "wrong password", type, "", address)));
  };

  it("are one event for an account, at the tenth failure within a minute", async () => {
    const [{ username }, address] = [await signedUp(), uniqueAddress()];
    expect(await eventsOf(username, () => fail(9, username, "user", address))).toEqual([]);
    const found = await eventsOf(username, async () => {
      await fail(6, username, "user", address);
      await fail(5, username, "user", uniqueAddress());
    });
    expect(found).toMatchObject([
      { type: "login.failing", severity: "warning", actor: "anyone", ap_id: null, data: { failures: 10 } },
    ]);
    expect(found[0]?.data.object).toBe(`user:${username}`);
    expect(address.startsWith(String(found[0]?.data.address))).toBe(true);
  });

  it("do not invalidate the tokens of the account, and are in the audit trail", async () => {
    const { apId, token } = await newAgent();
    await fail(10, apId, "agent", uniqueAddress());
    const response = await send("GET", `/api/v1/audit/?object=agent:${apId}`, undefined, await adminToken());
    expect(await response.json()).toMatchObject([{ action: "repeated failed logins" }, { action: "create" }]);
    expect((await send("GET", `/api/v1/agents/${apId}`, undefined, token)).status).toBe(200);
  });

  it("are one event for an address, at the hundredth failure, and none for names without an account", async () => {
    const address = uniqueAddress();
    const names = Array.from({ length: 10 }, () => uniqueName());
    const network = address.split(":").slice(0, 4).join(":");
    const found = await eventsOf(network, async () => {
      for (const name of names) await fail(10, name, "third_party_app", address);
    });
    expect(found).toMatchObject([
      { type: "login.failing", data: { object: `address:${network}`, failures: 100, address: network } },
    ]);
  });

  it("are not reported by a successful login", async () => {
    const username = settings.ADMIN_USERNAME ?? "";
    const found = await eventsOf(username, () => logIn(username, settings.ADMIN_PASSWORD ?? ""));
    expect(found.filter(({ type }) => type === "login.failing")).toEqual([]);
  });
});
