import { sql } from "drizzle-orm";
import * as fc from "fast-check";
import { beforeAll, describe, expect, it } from "vitest";
import { agentLabels, agents } from "../../../src/accounts/account-tables.ts";
import { createAgentStore } from "../../../src/accounts/agents/agent-store.ts";
import { type AgentScope, isInScope } from "../../../src/auth/agent-scope.ts";
import { type LabelCondition, type Labels, matches, type Selector } from "../../../src/lib/selectors.ts";
import { createDatabase } from "../../../src/storage/libsql.ts";
import { settings, uniqueName } from "../support.ts";

const database = createDatabase({ url: settings.EMPTY_LIBSQL_URL ?? "" });
const store = createAgentStore(database);
const BY = { kind: "console", name: "test", requestId: "" } as const;

const KEYS = ["site", "floor", "technology", "emulated", "owner"];
const VALUES = ["uk", "uk/bristol", "uk/bristol/library", "uk/bristol2", "WiFi", "LiFi", "true", "false", "a@b.c", "~"];

const value = fc.constantFrom(...VALUES.slice(0, -1));
const pattern = fc.oneof(value, fc.constantFrom("*", "uk/*", "uk/bristol*", "W*", "a@*", "u*"));
const condition = fc.record({
  key: fc.constantFrom(...KEYS),
  values: fc.option(fc.array(pattern, { minLength: 1, maxLength: 3 }), { nil: undefined }),
  negated: fc.boolean(),
}) satisfies fc.Arbitrary<LabelCondition>;
const selector: fc.Arbitrary<Selector> = fc.array(condition, { maxLength: 3 });

const prefix = `${uniqueName()}-`;
const names = Array.from({ length: 60 }, (_, i) => `${i % 3 === 0 ? "emu-wifi-" : ""}${prefix}${i}`).toSorted();
const scope: fc.Arbitrary<AgentScope> = fc.record({
  selectors: fc.option(fc.array(selector, { maxLength: 3 }), { nil: undefined }),
  ownerId: fc.option(fc.constantFrom("owner-1", "owner-2"), { nil: undefined }),
  apIds: fc.option(fc.subarray(names), { nil: undefined }),
});

/** Reads an agent as the services do, with the labels that the code computes. */
const found = async (apId: string) => (await store.find(apId)) ?? expect.unreachable();

describe("the conditions of selectors and scopes", () => {
  beforeAll(async () => {
    const custom = fc.dictionary(fc.constantFrom("site", "floor"), value, { maxKeys: 2, noNullPrototype: true });
    const type = fc.oneof(value, fc.constantFrom("", "5 G", "x".repeat(64), 7, null, "ü"));
    const samples = fc.sample(fc.tuple(custom, type, fc.constantFrom(null, "owner-1", "owner-2")), {
      numRuns: names.length,
      seed: 1,
    });
    for (const [i, [labels, access_point_type, ownerId]] of samples.entries()) {
      const apId = names[i] ?? "";
      const credential = { credentialKind: "hmac", credential: "" } as const;
      await store.insert({ apId, ...credential, configuration: { access_point_type }, labels }, BY);
      const owner = ownerId === null ? null : "a@b.c";
      await database.update(agents).set({ ownerId, owner }).where(sql`ap_id = ${apId}`);
    }
  });

  it("find the same agents in SQL as in memory", async () => {
    const all = await Promise.all(names.map(found));
    const runs = fc.asyncProperty(selector, scope, async (selector, scope) => {
      const expected = all.filter((agent) => isInScope(scope, agent) && matches(selector, agent.labels));
      expect(await store.names({ selector, scope, apIds: names })).toEqual(expected.map(({ apId }) => apId));
    });
    await fc.assert(runs, { numRuns: 200 });
  });

  it("read labels that the database keeps up to date when an agent changes or is deleted", async () => {
    const stored = async (apId: string): Promise<Labels> => {
      const rows = await database.select().from(agentLabels).where(sql`ap_id = ${apId}`);
      return Object.fromEntries(rows.map(({ key, value }) => [key, value]));
    };
    for (const apId of names) expect(await stored(apId)).toEqual((await found(apId)).labels);
    const [apId = ""] = names;
    await database
      .update(agents)
      .set({ configuration: { access_point_type: "LiFi" } })
      .where(sql`ap_id = ${apId}`);
    expect(await stored(apId)).toEqual((await found(apId)).labels);
    expect(await stored(apId)).toMatchObject({ technology: "LiFi" });
    await database
      .update(agents)
      .set({ labels: { floor: "3" }, owner: null })
      .where(sql`ap_id = ${apId}`);
    expect(await stored(apId)).toEqual({ floor: "3", technology: "LiFi", emulated: "true" });
    await database.delete(agents).where(sql`ap_id = ${apId}`);
    expect(await stored(apId)).toEqual({});
    names.shift();
  });
});
