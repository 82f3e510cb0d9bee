import { sql } from "drizzle-orm";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { createAgentStore } from "../../../src/accounts/agent-store.ts";
import { createGroupStore } from "../../../src/accounts/group-store.ts";
import type { Actor } from "../../../src/auth/identity.ts";
import { SCOPES } from "../../../src/auth/roles.ts";
import { createLabelStore } from "../../../src/fleet/label-store.ts";
import { createLabelling } from "../../../src/fleet/labelling.ts";
import { createSelectors } from "../../../src/fleet/selectors.ts";
import { Invalid } from "../../../src/lib/errors.ts";
import { createDatabase } from "../../../src/storage/libsql.ts";
import { settings } from "../support.ts";

/** More agents than one request may label, in the database that other tests do not list. */
const database = createDatabase({ url: settings.EMPTY_LIBSQL_URL ?? "", timeoutMs: 20_000 });
const store = createLabelStore(database);
const labelling = createLabelling({
  store,
  bulkStore: store,
  agents: createAgentStore(database),
  selectors: createSelectors(createGroupStore(database), () => Promise.resolve(() => true)),
  // These agents have no jobs.
  rechecks: { recheckJobsOf: () => {} },
});
const administrator: Actor = {
  kind: "admin",
  id: "admin",
  name: "admin",
  version: 1,
  expiresAtMs: Number.POSITIVE_INFINITY,
  roles: ["admin"],
  scopes: new Set(SCOPES),
  hasFullScope: true,
  requestId: "",
};
const nameOf = (i: number): string => `limit-${String(i).padStart(5, "0")}`;
const COUNT = 20_001;

describe("a change of labels", { timeout: 120_000 }, () => {
  beforeAll(async () => {
    const names = JSON.stringify(Array.from({ length: COUNT }, (_, i) => nameOf(i)));
    await database.run(
      sql`insert into agents (id, ap_id, credential_kind, credential, configuration, version, created_at, labels)
          select value, value, 'hmac', '', '{}', 1, 1, '{"fleet":"limit"}' from json_each(${names})`,
    );
  }, 60_000);
  afterAll(async () => {
    await database.run(sql`delete from agents where labels like '%"fleet":"limit"%'`);
  }, 60_000);

  it("includes at most 20,000 agents, and then changes all of them", async () => {
    const request = { selector: "fleet=limit", labels: { floor: "1" }, dry_run: false };
    const msg =
      "Value error, the selector selects more than 20,000 agents, which is the most that one request can change";
    const rejected = await labelling.updateMany(administrator, request).catch((error: unknown) => error);
    expect(rejected).toBeInstanceOf(Invalid);
    expect(rejected).toMatchObject({ items: [{ loc: ["selector"], msg }] });
    await database.run(sql`delete from agents where ap_id = ${nameOf(0)}`);
    expect(await labelling.updateMany(administrator, request)).toMatchObject({ agents: COUNT - 1, changed: COUNT - 1 });
    const lines = Array.from({ length: COUNT - 1 }, (_, i) => `${nameOf(i + 1)},f${i}`);
    const imported = await labelling.importCsv(administrator, `ap_id,floor\n${lines.join("\n")}`, false);
    expect(imported).toMatchObject({ agents: COUNT - 1, changed: COUNT - 1 });
    const [floor] = (await labelling.list(administrator, { limit: 3 })).filter(({ key }) => key === "floor");
    expect(floor?.values).toHaveLength(3);
  });

  it("is exported completely, over many pages", async () => {
    let text = "";
    const selector = [{ key: "fleet", values: ["limit"], negated: false }];
    for await (const piece of labelling.exportCsv(administrator, selector)) text += piece;
    const lines = text.split("\r\n");
    expect(lines[0]).toBe("ap_id,fleet,floor");
    expect(lines.slice(1, -1).map((line) => line.split(",")[0])).toEqual(
      Array.from({ length: COUNT - 1 }, (_, i) => nameOf(i + 1)),
    );
  });
});
