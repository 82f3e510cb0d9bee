import { env } from "cloudflare:test";
import { sql } from "drizzle-orm";
import { Hono } from "hono";
import { describe, expect, it } from "vitest";
import { agents } from "../../../src/accounts/account-tables.ts";
import { createAgentStore } from "../../../src/accounts/agents/agent-store.ts";
import type { AppEnv } from "../../../src/http/context.ts";
import { jsonArray } from "../../../src/http/json-array.ts";
import { onError } from "../../../src/http/on-error.ts";
import { produceAgentDetails } from "../../../src/jobs/producers/agent-details.ts";
import { Unavailable } from "../../../src/lib/errors.ts";
import { createDatabase } from "../../../src/storage/libsql.ts";
import { adminToken, appWith, bearer, newApp, request, send, settings, uniqueName } from "../support.ts";

/** A separate database: thousands of agents would slow down the lists of other tests. */
const database = createDatabase({ url: settings.EMPTY_LIBSQL_URL ?? "" });
const store = createAgentStore(database);

/** Inserts agents in one statement. One request per agent would take minutes. */
async function insertMany(prefix: string, count: number, configuration: string): Promise<string[]> {
  await database.run(sql`
    with recursive numbers(n) as (select 0 union all select n + 1 from numbers where n < ${count - 1})
    insert into ${agents} (id, ap_id, credential_kind, credential, configuration, onboard, version, created_at)
    select ${prefix} || n, ${prefix} || printf('%05d', n), 'hmac', '', ${configuration}, 1, 0, 0 from numbers`);
  return Array.from({ length: count }, (_, i) => `${prefix}${String(i).padStart(5, "0")}`);
}

const remove = (prefix: string) => database.run(sql`delete from ${agents} where ap_id like ${`${prefix}%`}`);

describe("a page of agents", () => {
  it("has at most 500 rows, and all pages together have every agent once, in order", async () => {
    const prefix = `${uniqueName()}-`;
    const names = await insertMany(prefix, 1_100, "{}");
    const sizes: number[] = [];
    const found: string[] = [];
    for await (const { rows } of store.pages({ filter: { apIds: names } })) {
      sizes.push(rows.length);
      found.push(...rows.map(({ apId }) => apId));
    }
    expect(sizes).toEqual([500, 500, 100]);
    expect(found).toEqual(names);
    const slice: string[] = [];
    for await (const { rows } of store.pages({ filter: { apIds: names }, offset: 90, limit: 700 }))
      slice.push(...rows.map(({ apId }) => apId));
    expect(slice).toEqual(names.slice(90, 790));
    await remove(prefix);
  });

  it("has at most two megabytes of configurations, or a single larger one", async () => {
    const prefix = `${uniqueName()}-`;
    const names = await insertMany(prefix, 5, JSON.stringify({ large: "網".repeat(300_000) }));
    const sizes: number[] = [];
    for await (const { rows } of store.pages({ filter: { apIds: names } })) sizes.push(rows.length);
    expect(sizes).toEqual([2, 2, 1]);
    expect(await store.page({ filter: { apIds: names }, limit: 2 })).toMatchObject({ isLast: true });
    expect(await store.page({ filter: { apIds: names }, limit: 3 })).toMatchObject({ isLast: false });

    const producer = produceAgentDetails(store, { apIds: names });
    const rows: string[] = [];
    for (let [cursor, isLast] = [undefined as unknown, false]; !isLast; ) {
      const step = await producer.next(cursor);
      rows.push(...step.rows);
      [cursor, isLast] = [step.cursor, step.isLast];
    }
    expect(rows.map((row) => (JSON.parse(row) as { ap_id: string }).ap_id)).toEqual(names);
    await remove(prefix);
  });

  it("contains no credentials", async () => {
    const prefix = `${uniqueName()}-`;
    const { rows } = await store.page({ filter: { apIds: await insertMany(prefix, 1, '{"a":1}') } });
    const labels = { emulated: "false" };
    expect(rows).toEqual([
      { id: `${prefix}0`, apId: `${prefix}00000`, configuration: { a: 1 }, onboard: true, labels, ownerId: null },
    ]);
    await remove(prefix);
  });

  it("accepts more names than SQLite accepts as parameters", async () => {
    const prefix = `${uniqueName()}-`;
    const [name = ""] = await insertMany(prefix, 1, "{}");
    const only = [name, ...Array.from({ length: 40_000 }, (_, i) => `none-${i}`)];
    expect((await store.page({ filter: { apIds: only } })).rows).toHaveLength(1);
    expect(await store.existing(only)).toEqual([name]);
    await remove(prefix);
  });
});

describe("the possible targets of a command", () => {
  it("are returned without their configurations, thousands at once", async () => {
    const prefix = `${uniqueName()}-`;
    const names = await insertMany(
      prefix,
      5_001,
      '{"commands":["go"],"access_point_type":"LiFi","large":"xxxxxxxxxxxx"}',
    );
    const found = await store.commandTargets(["go on", "go"], { apIds: names });
    expect(found.map(({ apId }) => apId)).toEqual(names);
    expect(found.every(({ supportsCommand, accessPointType }) => supportsCommand && accessPointType === "LiFi")).toBe(
      true,
    );
    expect(JSON.stringify(found)).not.toContain("xxx");
    expect((await store.outlines()).filter(({ apId }) => apId.startsWith(prefix))).toHaveLength(5_001);
    await remove(prefix);
  });

  it.each([
    ["{}", true],
    ['{"commands":"go"}', true],
    ['{"commands":{"go":1}}', true],
    ['{"commands":[]}', false],
    ['{"commands":["stop",1,null,["go"],"\\ud800"]}', false],
    ['{"commands":["\\udc00","go"]}', true],
  ])("state whether the agent supports the command: %s", async (configuration, supportsCommand) => {
    const prefix = `${uniqueName()}-`;
    const only = await insertMany(prefix, 1, configuration);
    // The second name is the JSON of a list, which is no name.
    expect(await store.commandTargets(["go", '["go"]'], { apIds: only })).toMatchObject([{ supportsCommand }]);
    await remove(prefix);
  });
});

describe("a JSON array that is sent in pages", () => {
  async function* pagesOf(pages: unknown[][], error?: Error) {
    yield* pages;
    if (error !== undefined) throw error;
  }
  const respondWith = async (pages: AsyncGenerator<unknown[]>) => {
    const app = new Hono<AppEnv>().get("/", async (c) => await jsonArray(c, pages));
    app.onError(onError);
    return await app.request("/");
  };

  it.each([
    [[], "[]"],
    [[[]], "[]"],
    [[[1, 2]], "[1,2]"],
    [[[1], [], [2, "x"], [], [{ a: 1 }]], '[1,2,"x",{"a":1}]'],
  ])("equals the array in one piece: %j", async (pages, text) => {
    const response = await respondWith(pagesOf(pages));
    expect([response.status, await response.text(), response.headers.get("Content-Type")]).toEqual([
      ...[200, text, "application/json"],
    ]);
  });

  it("returns 503 if the store fails before the first byte, and aborts the response if it fails later", async () => {
    const outage = new Unavailable("store", new Error("unavailable"));
    expect((await respondWith(pagesOf([], outage))).status).toBe(503);
    expect((await respondWith(pagesOf([[1]], outage))).status).toBe(503);
    const response = await respondWith(pagesOf([[1], [2], [3]], outage));
    expect(response.status).toBe(200);
    await expect(response.text()).rejects.toThrow();
  });
});

describe("GET /api/v1/agents/ and agent_details", () => {
  const paths = ["/api/v1/agents/", "/api/v1/metrics/agent_details"];

  it.each(paths)("%s returns 503 if a store is unavailable", async (path) => {
    const app = appWith({ LIBSQL_URL: "http://127.0.0.1:9", CLICKHOUSE_URL: "http://127.0.0.1:9" });
    expect((await app.request(path, { headers: bearer(await adminToken()) }, env)).status).toBe(503);
  });

  it.each(paths)("%s returns configurations with lone surrogates unchanged", async (path) => {
    const token = await adminToken();
    const ap_id = uniqueName();
    const configuration = { "key\ud800": "\udc00", nested: [{ "\udfff": 1 }] };
    const body = { ap_id, password: "a long enough password", configuration };
    expect((await send("POST", "/api/v1/agents/", body, token)).status).toBe(200);
    const app = await newApp({ ap_ids: [ap_id] });
    expect(await (await send("GET", path, undefined, app.token)).json()).toMatchObject([{ ap_id, configuration }]);
    expect((await send("GET", path, undefined, token)).status).toBe(200);
  });
});

describe("GET /api/v1/overview", () => {
  it("returns pages with limit and offset", async () => {
    const token = await adminToken();
    for (let i = 0; i < 3; i++) {
      const body = { ap_id: uniqueName(), password: "a long enough password", configuration: {} };
      expect((await send("POST", "/api/v1/agents/", body, token)).status).toBe(200);
    }
    const names = async (query: string) => {
      const response = await request(`/api/v1/overview${query}`, { headers: bearer(token) });
      const { access_points } = (await response.json()) as { access_points: { ap_id: string }[] };
      return access_points.map(({ ap_id }) => ap_id);
    };
    await expect
      .poll(async () => {
        const all = await names("");
        const pages = [...(await names("?limit=2")), ...(await names("?offset=2"))];
        return (
          all.length >= 3 &&
          JSON.stringify(pages) === JSON.stringify(all) &&
          (await names("?limit=1&offset=1"))[0] === all[1]
        );
      })
      .toBe(true);
    expect((await request("/api/v1/overview?limit=0", { headers: bearer(token) })).status).toBe(422);
  });
});
