import { env } from "cloudflare:test";
import { inArray } from "drizzle-orm";
import { afterEach, describe, expect, it, vi } from "vitest";
import { agents, audit } from "../../../src/accounts/account-tables.ts";
import { createAuditFeed } from "../../../src/accounts/audit-feed.ts";
import { createAccountVersions } from "../../../src/accounts/login/account-versions.ts";
import { parseEnv } from "../../../src/env.ts";
import { AccessGuard } from "../../../src/programs/broker/access-guard.ts";
import { createDatabase } from "../../../src/storage/libsql.ts";
import { uniqueName } from "../support.ts";

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

/** Counts the requests of this file's own client while `work` runs: objects of the Worker under test have theirs. */
async function queriesDuring(work: () => Promise<void>): Promise<number> {
  const { $client } = database;
  const spies = [vi.spyOn($client, "execute"), vi.spyOn($client, "batch")];
  await work();
  const count = spies.reduce((sum, { mock }) => sum + mock.calls.length, 0);
  for (const spy of spies) spy.mockRestore();
  return count;
}

describe("the broker's watch over accounts", () => {
  afterEach(() => vi.restoreAllMocks());

  const watching = (names: readonly string[], kept?: ConstructorParameters<typeof AccessGuard>[2]) => {
    const ended: string[] = [];
    const watch = new AccessGuard(createAuditFeed(database), createAccountVersions(database), kept);
    for (const name of names) {
      watch.add({ kind: "agent", name, version: VERSION, disconnect: () => ended.push(name) });
    }
    return { watch, ended };
  };
  const noteChange = (object: string) =>
    database.insert(audit).values({ at: new Date(), requestId: "r", actor: "console:test", action: "test", object });

  it("looks up 1,000 clients with a few queries, and none of them again for jobs that are not theirs", async () => {
    const job = crypto.randomUUID();
    const prefix = uniqueName();
    const plain = Array.from({ length: 990 }, (_, i) => `${prefix}-${i}`);
    const emulated = Array.from({ length: 10 }, (_, i) => `emu-wifi-${job.slice(0, 8)}-${i}`);
    const all = [...plain, ...emulated];
    for (let i = 0; i < all.length; i += 500) await inserted(all.slice(i, i + 500));
    const { watch, ended } = watching(all);

    expect(await queriesDuring(() => watch.check())).toBeLessThanOrEqual(3);
    expect(await queriesDuring(() => watch.check())).toBe(1);
    expect(ended).toEqual([]);

    await noteChange(`job:${crypto.randomUUID()}`);
    expect(await queriesDuring(() => watch.check())).toBe(1);

    await database.delete(agents).where(inArray(agents.apId, emulated.slice(0, 3)));
    await noteChange(`job:${job}`);
    expect(await queriesDuring(() => watch.check())).toBe(2);
    expect(ended).toEqual(emulated.slice(0, 3));
  });

  it("ends a client whose account has another version, after an outage too", async () => {
    const names = [uniqueName(), uniqueName()];
    await inserted(names);
    const { watch, ended } = watching(names);
    await watch.check();
    await database
      .update(agents)
      .set({ version: VERSION + 1 })
      .where(inArray(agents.apId, names.slice(0, 1)));
    await noteChange(`agent:${names[0]}`);
    const realFetch = globalThis.fetch;
    let requests = 0;
    // The audit trail can be read, the accounts cannot.
    vi.spyOn(globalThis, "fetch").mockImplementation((input, init) =>
      ++requests === 2 ? Promise.reject(new Error("away")) : realFetch(input, init),
    );
    await expect(watch.check()).rejects.toThrow();
    expect(ended).toEqual([]);
    await watch.check();
    expect(ended).toEqual(names.slice(0, 1));
  });

  it("forgets what is kept for agents that are gone, connected or not", async () => {
    const names = [uniqueName(), uniqueName(), uniqueName()];
    const [goneBefore = "", goneLater = "", staying = ""] = names;
    await inserted([goneLater, staying]);
    const forgotten: string[] = [];
    const { watch } = watching([], { owners: () => names, removeAgent: async (apId) => void forgotten.push(apId) });
    await watch.check();
    expect(forgotten).toEqual([goneBefore]);
    await database.delete(agents).where(inArray(agents.apId, [goneLater]));
    await noteChange(`agent:${goneLater}`);
    await watch.check();
    expect(forgotten).toEqual([goneBefore, goneLater]);
  });
});
