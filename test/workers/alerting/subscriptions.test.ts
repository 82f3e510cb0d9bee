import { env } from "cloudflare:test";
import { eq, like } from "drizzle-orm";
import { afterAll, describe, expect, it } from "vitest";
import { audit } from "../../../src/accounts/account-tables.ts";
import { parseEnv } from "../../../src/env.ts";
import { events, subscriptions } from "../../../src/events/event-tables.ts";
import type { NewSubscription, Subscription } from "../../../src/schemas/subscriptions.ts";
import { createDatabase } from "../../../src/storage/libsql.ts";
import { adminToken, appWith, bearer, newApp, send, signedUp, uniqueName } from "../support.ts";

const database = createDatabase({ url: parseEnv(env).LIBSQL_URL });
const BASE = "/api/v1/subscriptions/";
const WEBHOOK = { kind: "webhook", address: "https://receiver.example.com/hook?x=1" };

const create = async (target: object, token: string, more: object = {}) =>
  await send("POST", BASE, { name: "Mine", target, ...more }, token);
const created = async (target: object, token: string, more: object = {}): Promise<NewSubscription> => {
  const response = await create(target, token, more);
  expect(response.status).toBe(200);
  return (await response.json()) as NewSubscription;
};
const read = async (id: string, token: string) =>
  (await (await send("GET", `${BASE}${id}`, undefined, token)).json()) as Subscription;
const list = async (token: string, query = "") =>
  (await (await send("GET", `${BASE}${query}`, undefined, token)).json()) as Subscription[];
const errorOf = async (response: Response) => {
  const { detail } = (await response.json()) as { detail: { loc: string[]; msg: string }[] };
  return [response.status, detail[0]?.loc, detail[0]?.msg];
};

// Otherwise the notifier of the service would send the events of later tests to them.
afterAll(async () => void (await database.delete(subscriptions)));

describe("a subscription", () => {
  it("shows its secret once, and a new one after a rotation", async () => {
    const { token, username } = await signedUp();
    const { secret, ...shown } = await created(WEBHOOK, token, {
      filter: { types: ["alert.fired"], severity: "warning" },
    });
    expect(secret).toMatch(/^whsec_[A-Za-z0-9+/]{43}=$/);
    expect(shown).toEqual({
      id: expect.any(String),
      name: "Mine",
      owner: username,
      filter: { types: ["alert.fired"], selector: "", severity: "warning" },
      target: { ...WEBHOOK, has_credentials: false },
      created_at: expect.any(String),
      cursor: expect.any(Number),
      backlog: 0,
      delivered_at: null,
      last_error: null,
      failing_since: null,
      next_attempt_at: null,
      stopped_at: null,
    });
    expect(await read(shown.id, token)).toEqual(shown);
    expect(await list(token)).toEqual([shown]);
    const rotated = await send("POST", `${BASE}${shown.id}/rotate_secret`, undefined, token);
    const { secret: second } = (await rotated.json()) as NewSubscription;
    expect(second).toMatch(/^whsec_/);
    expect(second).not.toBe(secret);
    const rows = await database.select().from(subscriptions).where(eq(subscriptions.id, shown.id));
    for (const one of [secret, second]) expect(JSON.stringify(rows)).not.toContain(one?.slice("whsec_".length));
  });

  it("changes, is audited and is deleted", async () => {
    const { token, username } = await signedUp();
    const { id } = await created(WEBHOOK, token);
    const filter = { types: [], selector: "site=uk", severity: "info" };
    const changed = await send("PUT", `${BASE}${id}`, { name: "Other", filter }, token);
    expect(await changed.json()).toMatchObject({ name: "Other", filter, target: WEBHOOK });
    expect((await send("DELETE", `${BASE}${id}`, undefined, token)).status).toBe(200);
    expect((await send("DELETE", `${BASE}${id}`, undefined, token)).status).toBe(404);
    expect(
      await database
        .select()
        .from(audit)
        .where(eq(audit.object, `subscription:${id}`)),
    ).toMatchObject([
      { action: "create", actor: `user:${username}`, detail: { kind: "webhook" } },
      { action: "change", detail: { name: "Other", filter } },
      { action: "delete" },
    ]);
  });

  it("keeps the credentials of a URL from responses and from other addresses", async () => {
    const { token } = await signedUp();
    const password = `p-${uniqueName()}`;
    const address = "https://receiver.example.com/hook";
    const target = { kind: "alertmanager", address: address.replace("//", `//me:${password}@`) };
    const { id, ...shown } = await created(target, token);
    expect(shown).toMatchObject({ secret: null, target: { address, has_credentials: true } });
    const put = async (to: string) => {
      const response = await send("PUT", `${BASE}${id}`, { target: { kind: "alertmanager", address: to } }, token);
      const text = await response.text();
      expect(text).not.toContain(password);
      return (JSON.parse(text) as Subscription).target.has_credentials;
    };
    expect(await put(address)).toBe(true);
    expect(await put("https://elsewhere.example.com/")).toBe(false);
    const trail = await database
      .select()
      .from(audit)
      .where(like(audit.detail, `%${password}%`));
    expect(trail).toEqual([]);
  });

  it("belongs to one account: for others it does not exist, and administrators have access to all", async () => {
    const [mine, other] = [await signedUp(), await signedUp()];
    const { id } = await created(WEBHOOK, mine.token);
    const absent = crypto.randomUUID();
    const calls: [string, string, object?][] = [
      ["GET", ""],
      ["PUT", "", { name: "x" }],
      ["POST", "/rotate_secret"],
      ["POST", "/test"],
      ["POST", "/resume"],
      ["DELETE", ""],
    ];
    for (const [method, path, body] of calls) {
      const responses = [id, absent].map((one) => send(method, `${BASE}${one}${path}`, body, other.token));
      const [foreign, missing] = await Promise.all(
        responses.map(async (one) => [(await one).status, await (await one).text()]),
      );
      expect(foreign).toEqual(missing);
      expect(foreign?.[0]).toBe(404);
    }
    expect(await list(other.token)).toEqual([]);
    expect((await list(await adminToken(), "?limit=1000")).map((one) => one.id)).toContain(id);
    expect((await read(id, await adminToken())).owner).toBe(mine.username);
  });

  it("is deleted with its account", async () => {
    const { token, username } = await signedUp();
    const { appName, token: appToken } = await newApp();
    const ids = [(await created(WEBHOOK, token)).id, (await created(WEBHOOK, appToken)).id];
    const removals = [`users/${username}`, `third_party_apps/${appName}`];
    for (const path of removals)
      expect((await send("DELETE", `/api/v1/${path}`, undefined, await adminToken())).status).toBe(200);
    for (const id of ids) expect((await send("GET", `${BASE}${id}`, undefined, await adminToken())).status).toBe(404);
  });

  it("is one of at most 20 per account", async () => {
    const { token } = await signedUp();
    for (let i = 0; i < 20; i++) await created(WEBHOOK, token);
    const full = await create(WEBHOOK, token);
    expect([full.status, await full.json()]).toEqual([
      409,
      { detail: "Your account has 20 subscriptions. Delete some of them first" },
    ]);
  });
});

describe("a target", () => {
  it.each([
    "http://localhost/",
    "http://a.localhost:8080/",
    "http://127.0.0.1/",
    "http://2130706433/",
    "http://0x7f.1/",
    "http://0/",
    "http://10.1.2.3/",
    "http://169.254.169.254/latest/meta-data",
    "http://172.31.0.1/",
    "http://192.168.1.1/",
    "http://100.64.0.1/",
    "http://[::1]/",
    "http://[::ffff:127.0.0.1]/",
    "http://[fe80::1]/",
    "http://[fd00::1]/",
    "http://[64:ff9b::7f00:1]/",
    "http://[2002:7f00:1::]/",
  ])("is rejected if it is %s, unless the setting allows it", async (address) => {
    const { token } = await signedUp();
    expect(await errorOf(await create({ kind: "webhook", address }, token))).toEqual([
      422,
      ["body", "target", "address"],
      "Value error, the address is not on the public internet. The setting WEBHOOK_NETWORKS allows no others",
    ]);
    const app = appWith({ WEBHOOK_NETWORKS: "private" });
    const body = JSON.stringify({ name: "x", target: { kind: "alertmanager", address } });
    const headers = { ...bearer(token), "Content-Type": "application/json" };
    expect((await app.request(BASE, { method: "POST", body, headers })).status).toBe(200);
  });

  it.each([
    "http://93.184.216.34/",
    "https://[2606:4700::1111]/",
    "https://172.32.0.1/",
    "https://localhost.example.com/",
  ])("may be %s", async (address) => {
    const { token } = await signedUp();
    expect((await create({ kind: "webhook", address }, token)).status).toBe(200);
  });

  it.each(["ftp://example.com/", "file:///etc/passwd", "https://", "javascript:alert(1)", "example.com", ""])(
    "must be a URL of HTTP: %s",
    async (address) => {
      const { token } = await signedUp();
      expect((await create({ kind: "webhook", address }, token)).status).toBe(422);
    },
  );

  it("cannot change its kind", async () => {
    const { token } = await signedUp();
    const { id } = await created({ kind: "mqtt" }, token);
    const response = await send("PUT", `${BASE}${id}`, { target: WEBHOOK }, token);
    expect((await errorOf(response)).slice(0, 2)).toEqual([422, ["body", "target", "kind"]]);
    expect((await send("POST", `${BASE}${id}/rotate_secret`, undefined, token)).status).toBe(422);
  });

  it("for e-mail is the own address, unless an administrator sets another one", async () => {
    const { token, username } = await signedUp();
    const own = await created({ kind: "email" }, token);
    expect(own.target.address).toBe(username);
    const foreign = { kind: "email", address: "victim@example.com" };
    expect((await create(foreign, token)).status).toBe(422);
    expect((await send("PUT", `${BASE}${own.id}`, { target: foreign }, token)).status).toBe(422);
    const set = await send("PUT", `${BASE}${own.id}`, { target: foreign }, await adminToken());
    expect(await set.json()).toMatchObject({ owner: username, target: { address: "victim@example.com" } });
    const { token: appToken } = await newApp();
    expect((await create({ kind: "email" }, appToken)).status).toBe(422);
  });

  it("must have a selector whose groups exist and are visible", async () => {
    const { token } = await signedUp();
    const response = await create(WEBHOOK, token, { filter: { selector: "@none" } });
    expect((await errorOf(response)).slice(0, 2)).toEqual([422, ["body", "filter", "selector"]]);
    expect((await create(WEBHOOK, token, { filter: { selector: "a b" } })).status).toBe(422);
  });
});

describe("the notifier of the service", () => {
  it("publishes a test event and new events to the topic of the subscription", async () => {
    const { token, username } = await signedUp();
    const { id, target } = await created({ kind: "mqtt" }, token, { filter: { types: ["agent.offline"] } });
    expect(target.address).toBe(`event/${username}/${id}`);
    const tested = await send("POST", `${BASE}${id}/test`, undefined, token);
    expect(await tested.json()).toEqual({ delivered: true, error: null });
    expect((await read(id, token)).delivered_at).toBeNull();
    for (let i = 0; i < 3; i++) {
      const row = { at: new Date(), type: "agent.offline", severity: "warning", apId: uniqueName() } as const;
      const [event] = await database.insert(events).values(row).returning();
      const cursor = async () => (await read(id, token)).cursor;
      // Other tests add events, too.
      await expect.poll(cursor, { interval: 20, timeout: 15_000 }).toBeGreaterThanOrEqual(event?.id ?? Infinity);
      expect((await read(id, token)).delivered_at).not.toBeNull();
    }
  });

  it("reports why a test failed, and tests at most ten times per minute", async () => {
    const { token } = await signedUp();
    const { id } = await created({ kind: "webhook", address: "https://receiver.invalid/" }, token);
    const test = () => send("POST", `${BASE}${id}/test`, undefined, token);
    expect(await (await test()).json()).toEqual({ delivered: false, error: expect.any(String) });
    await database.delete(subscriptions).where(eq(subscriptions.id, id));
    const { id: mqtt } = await created({ kind: "mqtt" }, token);
    for (let i = 0; i < 9; i++) await send("POST", `${BASE}${mqtt}/test`, undefined, token);
    expect((await send("POST", `${BASE}${mqtt}/test`, undefined, token)).status).toBe(429);
  });
});
