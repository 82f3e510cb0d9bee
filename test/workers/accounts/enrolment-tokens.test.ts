import { env } from "cloudflare:test";
import { eq, like } from "drizzle-orm";
import { describe, expect, it } from "vitest";
import { audit, enrolmentTokens } from "../../../src/accounts/account-tables.ts";
import { createAgentStore } from "../../../src/accounts/agents/agent-store.ts";
import { parseEnv } from "../../../src/env.ts";
import type { NewEnrolmentToken } from "../../../src/schemas/accounts/enrolment-token.ts";
import { createDatabase } from "../../../src/storage/libsql.ts";
import { adminToken, newApp, PASSWORD, send, settings, signedUp, tokenOf, uniqueName } from "../support.ts";

const database = createDatabase({ url: parseEnv(env).LIBSQL_URL });
const BASE = "/api/v1/enrolment_tokens/";

const create = async (body: object, token?: string) => await send("POST", BASE, body, token ?? (await adminToken()));
const created = async (body: object, token?: string): Promise<NewEnrolmentToken> => {
  const response = await create(body, token);
  expect(response.status).toBe(200);
  return (await response.json()) as NewEnrolmentToken;
};
const list = async (token: string) =>
  (await (await send("GET", BASE, undefined, token)).json()) as { id: string; uses: number; revoked_at: string }[];
const revoke = async (id: string, token?: string) =>
  await send("DELETE", `${BASE}${id}`, undefined, token ?? (await adminToken()));
const enrol = async (token: string, apId = uniqueName(), more: object = {}) => {
  const body = { ap_id: apId, password: PASSWORD, configuration: {}, ...more };
  const response = await send("POST", "/api/v1/agents/public", body, token);
  return { status: response.status, apId, body: (await response.json()) as { detail?: string } };
};
const manager = async (selector: string) => (await signedUp([{ role: "manager", selector }])).token;
const entriesOf = (object: string) => database.select().from(audit).where(eq(audit.object, object));

describe("an enrolment token", () => {
  it("enrols agents with its labels, up to its limit, and is shown once", async () => {
    const labels = { site: "uk/bristol" };
    const { token, ...shown } = await created({ description: "Library", labels, max_uses: 2 });
    expect(token).toMatch(/^enrol_[A-Za-z0-9_-]{43}$/);
    expect(shown).toEqual({
      id: expect.any(String),
      prefix: token.slice(0, 12),
      description: "Library",
      labels,
      max_uses: 2,
      uses: 0,
      expires_at: null,
      created_by: `admin:${settings.ADMIN_USERNAME}`,
      created_at: expect.any(String),
      revoked_at: null,
    });
    const first = await enrol(token, undefined, { labels: { site: "elsewhere" } });
    expect(first.status).toBe(200);
    const agent = await createAgentStore(database).find(first.apId);
    expect(agent?.labels).toEqual({ ...labels, emulated: "false" });
    expect((await enrol(token, first.apId)).status).toBe(409);
    const outcomes = await Promise.all([enrol(token), enrol(token), enrol(token)]);
    expect(outcomes.map(({ status }) => status).toSorted()).toEqual([200, 403, 403]);
    expect((await enrol(token)).body).toEqual({
      detail: "The enrolment token has been used 2 times, which is its limit",
    });
    expect((await list(await adminToken())).find(({ id }) => id === shown.id)).toEqual({ ...shown, uses: 2 });
    const rows = await database.select().from(enrolmentTokens).where(eq(enrolmentTokens.id, shown.id));
    expect(JSON.stringify(rows)).not.toContain(token);
  });

  it("is audited, and so is each agent that it enrols", async () => {
    const { id, prefix, token } = await created({ labels: { site: "a" } });
    const { apId } = await enrol(token);
    await revoke(id);
    await revoke(id);
    expect(await entriesOf(`enrolment_token:${prefix}`)).toMatchObject([
      { action: "create", detail: { labels: { site: "a" }, max_uses: null } },
      { action: "revoke" },
    ]);
    expect(await entriesOf(`agent:${apId}`)).toMatchObject([{ action: "create", actor: `enrolment:${prefix}` }]);
    const written = await database
      .select()
      .from(audit)
      .where(like(audit.detail, `%${token}%`));
    expect(written).toEqual([]);
  });

  it("is rejected with 401 if it is unknown or revoked", async () => {
    const { id, token } = await created({});
    expect((await revoke(id)).status).toBe(200);
    expect((await enrol(token)).status).toBe(401);
    expect((await enrol(`enrol_${"A".repeat(43)}`)).status).toBe(401);
    const revoked = (await list(await adminToken())).find((one) => one.id === id);
    expect(revoked?.revoked_at).toEqual(expect.any(String));
    expect((await revoke(crypto.randomUUID())).status).toBe(404);
  });

  it("expires", async () => {
    const { id, token } = await created({ expires_at: new Date(Date.now() + 60_000).toISOString() });
    expect((await enrol(token)).status).toBe(200);
    await database.update(enrolmentTokens).set({ expiresAt: new Date() }).where(eq(enrolmentTokens.id, id));
    const late = await enrol(token);
    expect([late.status, late.body]).toEqual([403, { detail: "The enrolment token has expired" }]);
    expect((await create({ expires_at: "2020-01-01T00:00:00Z" })).status).toBe(422);
  });

  it("allows no other operation", async () => {
    const { token } = await created({});
    for (const path of ["/api/v1/agents/", BASE, "/api/v1/jobs/"]) {
      expect((await send("GET", path, undefined, token)).status).toBe(403);
    }
  });

  it.each([
    { labels: { technology: "WiFi" } },
    { labels: { "a b": "c" } },
    { max_uses: 0 },
    { description: "x".repeat(501) },
    { description: "\ud94a" },
  ])("is rejected with 422 if it is invalid: %j", async (body) => {
    expect((await create(body)).status).toBe(422);
  });
});

describe("the enrolment token of the settings", () => {
  it("is the first of the list, without its text, and cannot be revoked", async () => {
    const [first] = await list(await adminToken());
    expect(first).toMatchObject({ id: "settings", prefix: "ENROLMENT_TOKEN", max_uses: null, expires_at: null });
    const uses = first?.uses ?? 0;
    expect((await enrol(settings.ENROLMENT_TOKEN ?? "")).status).toBe(200);
    expect((await list(await adminToken()))[0]?.uses).toBe(uses + 1);
    const response = await revoke("settings");
    expect([response.status, await response.json()]).toEqual([
      409,
      { detail: "This token is in the settings. Remove ENROLMENT_TOKEN there" },
    ]);
  });
});

describe("a manager", () => {
  it("creates, lists and revokes only tokens whose labels are in its scope", async () => {
    const token = await manager("site=uk/*,!retired");
    const mine = await created({ labels: { site: "uk/bath" } }, token);
    const other = await created({ labels: { site: "fr" } });
    for (const labels of [{}, { site: "fr" }, { site: "uk/bath", retired: "yes" }]) {
      const response = await create({ labels }, token);
      expect([response.status, await response.json()]).toEqual([
        403,
        { detail: "Your grants do not include agents with these labels" },
      ]);
    }
    const shown = (await list(token)).map(({ id }) => id);
    expect([shown.includes(mine.id), shown.includes(other.id), shown.includes("settings")]).toEqual([
      true,
      false,
      false,
    ]);
    const absent = await revoke(crypto.randomUUID(), token);
    const expected = [404, await absent.text()];
    for (const id of [other.id, "settings"]) {
      const response = await revoke(id, token);
      expect([response.status, await response.text()]).toEqual(expected);
    }
    expect((await enrol(other.token)).status).toBe(200);
    expect((await revoke(mine.id, token)).status).toBe(200);
    expect((await enrol(mine.token)).status).toBe(401);
  });

  it("that is an app limited to some names cannot enrol others", async () => {
    const { appName } = await newApp({ ap_ids: [uniqueName()] });
    const body = { grants: [{ role: "manager", selector: "" }] };
    await send("PUT", `/api/v1/third_party_apps/${appName}/grants`, body, await adminToken());
    const token = await tokenOf(appName, PASSWORD, "third_party_app");
    expect((await create({}, token)).status).toBe(403);
    expect(await list(token)).toEqual([]);
  });

  it("is the least role for it", async () => {
    const { token } = await signedUp([{ role: "operator", selector: "" }]);
    expect((await create({}, token)).status).toBe(403);
    expect((await send("GET", BASE, undefined, token)).status).toBe(403);
  });
});

describe("enrolment tokens", () => {
  it("are at most 1,000, without the revoked ones, of which the newest stay in the list", async () => {
    const marked = uniqueName();
    const rows = Array.from({ length: 1_000 }, (_, i) => ({
      id: `${marked}-${i}`,
      tokenHash: `${marked}-${i}`,
      prefix: "enrol_test",
      description: marked,
      labels: {},
      createdBy: "console:test",
      createdAt: new Date(0),
    }));
    try {
      for (let i = 0; i < rows.length; i += 500) await database.insert(enrolmentTokens).values(rows.slice(i, i + 500));
      const full = await create({});
      expect([full.status, await full.json()]).toEqual([
        409,
        { detail: "There are 1,000 enrolment tokens. Revoke some of them first" },
      ]);
      await database
        .update(enrolmentTokens)
        .set({ revokedAt: new Date(0) })
        .where(eq(enrolmentTokens.description, marked));
      const { id } = await created({});
      expect((await revoke(id)).status).toBe(200);
      const ids = (await list(await adminToken())).filter(({ revoked_at }) => revoked_at !== null);
      expect(ids.length).toBe(1_000);
      expect(ids.map((one) => one.id)).toContain(id);
    } finally {
      await database.delete(enrolmentTokens).where(eq(enrolmentTokens.description, marked));
    }
  });
});
