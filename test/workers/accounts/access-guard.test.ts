import { env } from "cloudflare:test";
import { inArray } from "drizzle-orm";
import { decodeJwt } from "jose";
import { afterEach, describe, expect, it, vi } from "vitest";
import { agents, audit } from "../../../src/accounts/account-tables.ts";
import { createAuditFeed } from "../../../src/accounts/audit-feed.ts";
import { createAccountVersions } from "../../../src/accounts/login/account-versions.ts";
import { parseEnv } from "../../../src/env.ts";
import { AccessGuard } from "../../../src/programs/broker/access-guard.ts";
import { createDatabase } from "../../../src/storage/libsql.ts";
import { adminToken, newApp, PASSWORD, send, tokenOf, uniqueName } from "../support.ts";

const config = parseEnv(env);
const database = createDatabase({ url: config.LIBSQL_URL });

const VERSION = 7;
const inserted = (names: readonly string[]) =>
  database.insert(agents).values(
    names.map((apId) => ({
      id: crypto.randomUUID(),
      apId,
      credentialKind: "hmac" as const,
      credential: "none",
      configuration: {},
      version: VERSION,
      createdAt: new Date(),
    })),
  );

/** Counts the queries of this file's client while `work` runs. Objects of the Worker under test use other clients. */
async function queriesDuring(work: () => Promise<void>): Promise<number> {
  const { $client } = database;
  const spies = [vi.spyOn($client, "execute"), vi.spyOn($client, "batch")];
  await work();
  const count = spies.reduce((sum, { mock }) => sum + mock.calls.length, 0);
  for (const spy of spies) spy.mockRestore();
  return count;
}

describe("the access guard of the broker", () => {
  afterEach(() => vi.restoreAllMocks());

  const guarding = (names: readonly string[], kept?: ConstructorParameters<typeof AccessGuard>[2]) => {
    const disconnected: string[] = [];
    const guard = new AccessGuard(createAuditFeed(database), createAccountVersions(database), kept);
    for (const name of names) {
      guard.add({ kind: "agent", name, version: VERSION, disconnect: () => disconnected.push(name) });
    }
    return { guard, disconnected };
  };
  const recordChange = (object: string) =>
    database.insert(audit).values({ at: new Date(), requestId: "r", actor: "console:test", action: "test", object });

  it("checks 1,000 clients with a few queries, and rechecks emulated agents only for their own job", async () => {
    const job = crypto.randomUUID();
    const prefix = uniqueName();
    const plain = Array.from({ length: 990 }, (_, i) => `${prefix}-${i}`);
    const emulated = Array.from({ length: 10 }, (_, i) => `emu-wifi-${job.slice(0, 8)}-${i}`);
    const all = [...plain, ...emulated];
    for (let i = 0; i < all.length; i += 500) await inserted(all.slice(i, i + 500));
    const { guard, disconnected } = guarding(all);

    expect(await queriesDuring(() => guard.check())).toBeLessThanOrEqual(3);
    expect(await queriesDuring(() => guard.check())).toBe(1);
    expect(disconnected).toEqual([]);

    await recordChange(`job:${crypto.randomUUID()}`);
    expect(await queriesDuring(() => guard.check())).toBe(1);

    await database.delete(agents).where(inArray(agents.apId, emulated.slice(0, 3)));
    await recordChange(`job:${job}`);
    expect(await queriesDuring(() => guard.check())).toBe(2);
    expect(disconnected).toEqual(emulated.slice(0, 3));
  });

  it("disconnects a client whose account version has changed, also after an outage", async () => {
    const names = [uniqueName(), uniqueName()];
    await inserted(names);
    const { guard, disconnected } = guarding(names);
    await guard.check();
    await database
      .update(agents)
      .set({ version: VERSION + 1 })
      .where(inArray(agents.apId, names.slice(0, 1)));
    await recordChange(`agent:${names[0]}`);
    const realFetch = globalThis.fetch;
    let failures = 0;
    // The first query for the accounts fails. The one for the audit trail succeeds, as do those of other parts of the service.
    vi.spyOn(globalThis, "fetch").mockImplementation(async (input, init) => {
      const request = new Request(input, init);
      const isForAccounts = (await request.clone().text()).includes(names[0] ?? "");
      if (isForAccounts && ++failures === 1) throw new Error("unavailable");
      return await realFetch(request);
    });
    await expect(guard.check()).rejects.toThrow();
    expect(disconnected).toEqual([]);
    await guard.check();
    expect(disconnected).toEqual(names.slice(0, 1));
  });

  it("disconnects an app when its grants limit it, and its next token cannot use the broker", async () => {
    const { appName, token } = await newApp({ broker: true });
    const { scope, ver } = decodeJwt<{ scope: string; ver: number }>(token);
    expect(scope.split(" ")).toContain("broker:use");
    const { guard, disconnected } = guarding([]);
    guard.add({ kind: "app", name: appName, version: ver, disconnect: () => disconnected.push(appName) });
    await guard.check();
    expect(disconnected).toEqual([]);
    const body = { grants: [{ role: "operator", selector: "site=a" }] };
    const changed = await send("PUT", `/api/v1/third_party_apps/${appName}/grants`, body, await adminToken());
    expect(changed.status).toBe(200);
    await guard.check();
    expect(disconnected).toEqual([appName]);
    const next = decodeJwt<{ scope: string }>(await tokenOf(appName, PASSWORD, "third_party_app"));
    expect(next.scope.split(" ")).not.toContain("broker:use");
  });

  it("removes stored data of deleted agents, connected or not", async () => {
    const names = [uniqueName(), uniqueName(), uniqueName()];
    const [goneBefore = "", goneLater = "", staying = ""] = names;
    await inserted([goneLater, staying]);
    const removed: string[] = [];
    const { guard } = guarding([], { owners: async () => names, removeAgent: async (apId) => void removed.push(apId) });
    await guard.check();
    expect(removed).toEqual([goneBefore]);
    await database.delete(agents).where(inArray(agents.apId, [goneLater]));
    await recordChange(`agent:${goneLater}`);
    await guard.check();
    expect(removed).toEqual([goneBefore, goneLater]);
  });
});
