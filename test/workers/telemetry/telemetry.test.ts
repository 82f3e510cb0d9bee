import { env } from "cloudflare:test";
import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { parseEnv } from "../../../src/env.ts";
import { Unavailable } from "../../../src/lib/errors.ts";
import { createClickHouse } from "../../../src/storage/clickhouse.ts";
import { READ_SETTINGS } from "../../../src/telemetry/store/clickhouse-query.ts";
import {
  adminToken,
  anyText,
  appWith,
  bearer,
  newAgent,
  newApp,
  send,
  settings,
  signedUp,
  uniqueName,
} from "../support.ts";

interface Point {
  ts: string;
  value: number | string;
}
interface Series {
  metric: string;
  bucket_ms?: number;
  points: Point[];
}

const post = (body: unknown, token: string) => send("POST", "/api/v1/agent_update/update", body, token);
const get = async (path: string, token: string) => await send("GET", `/api/v1/metrics/${path}`, undefined, token);
const data = async (apId: string, token: string, query = "") => {
  const response = await get(`agent_data?agent=${apId}${query}`, token);
  expect(response.status).toBe(200);
  return (await response.json()) as { key: string; agent_id: string; window_minutes: number; series: Series[] };
};
const multi = async (apId: string, token: string, metrics: string, query = "") => {
  const response = await get(`agent_multi_metric_data?agent=${apId}&metrics=${metrics}${query}`, token);
  expect(response.status).toBe(200);
  return (await response.json()) as { agent_id: string; window_minutes: number; series: Series[] };
};
const values = (series: Series[]) =>
  Object.fromEntries(series.map(({ metric, points }) => [metric, points.map(({ value }) => value)]));
const secondsAgo = (seconds: number) => new Date(Date.now() - seconds * 1000).toISOString();

describe("what an agent reports", () => {
  it("is there at the next request, in every form", async () => {
    const { apId, token } = await newAgent();
    const forms = [
      { payload: { a: 1 }, ts: secondsAgo(50) },
      { a: 2, ts: Math.floor(Date.now() / 1000) - 40 },
      { ap_id: apId, a: 3, ts: Date.now() - 30_000 },
      {
        samples: [
          { ts: secondsAgo(20), payload: { a: 4 } },
          { ts: secondsAgo(10), payload: { a: 5 } },
        ],
      },
      { a: 6 },
    ];
    for (const form of forms) {
      const answer = await (await post(form, token)).json();
      expect(answer).toMatchObject({ status: "success", accepted: "samples" in form ? 2 : 1, rejected: [] });
    }
    expect(values((await multi(apId, token, "a")).series)).toEqual({ a: [1, 2, 3, 4, 5, 6] });
  });

  it("is flattened; numbers and booleans are metrics, texts are texts, the rest is refused by name", async () => {
    const { apId, token } = await newAgent();
    const payload = '{"cpu":{"load":0.5,"ok":true},"name":"x","list":[1],"none":null,"huge":1e999,"cpu.load":2}';
    const answer = await (await post(`{"payload":${payload}}`, token)).json();
    expect(answer).toEqual({
      status: "success",
      detail: "3 values stored",
      accepted: 3,
      rejected: [
        { field: "list", reason: "is an array" },
        { field: "none", reason: "is null" },
        { field: "huge", reason: "is not a finite number" },
        { field: "cpu.load", reason: "is given twice" },
      ],
    });
    const { key, agent_id, window_minutes, series } = await data(apId, token);
    expect({ key, agent_id, window_minutes }).toEqual({ key: `agent/${apId}/data`, agent_id: apId, window_minutes: 5 });
    expect(values(series)).toEqual({ "cpu.load": [0.5], "cpu.ok": [1], name: ["x"] });
    expect(values((await multi(apId, token, "name,cpu.ok")).series)).toEqual({ name: [], "cpu.ok": [1] });
  });

  it("may be a text of 16,384 characters, not of more", async () => {
    const { apId, token } = await newAgent();
    const payload = { fits: "x".repeat(16_384), long: "x".repeat(16_385) };
    expect(await (await post({ payload }, token)).json()).toMatchObject({
      accepted: 1,
      rejected: [{ field: "long", reason: "is a text of more than 16384 characters" }],
    });
    expect(values((await data(apId, token)).series)).toEqual({ fits: [payload.fits] });
  });

  it("sent twice is there once: the first one stays", async () => {
    const { apId, token } = await newAgent();
    const sample = { ts: secondsAgo(5), payload: { a: 1, b: "x" } };
    for (let i = 0; i < 3; i++) await post(sample, token);
    await post({ ...sample, payload: { a: 2, c: 3 } }, token);
    expect(values((await data(apId, token)).series)).toEqual({ a: [1], b: ["x"], c: [3] });
  });

  it("from many agents at once is there for each", async () => {
    const agents = await Promise.all(Array.from({ length: 20 }, () => newAgent()));
    const answers = await Promise.all(agents.map(({ token }, i) => post({ x: i }, token)));
    expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([200]));
    for (const [i, { apId, token }] of agents.entries()) {
      expect(values((await multi(apId, token, "x")).series)).toEqual({ x: [i] });
    }
  });

  it("puts its configuration and place into its record, key by key", async () => {
    const { apId, token } = await newAgent({ vendor: "x", limits: { a: 1 } });
    await post({ configuration: { limits: { b: 2 } }, geolocation: { lat: "51.4", lon: -2.5 } }, token);
    const agent = (await (await send("GET", `/api/v1/agents/${apId}`, undefined, token)).json()) as {
      configuration: unknown;
    };
    expect(agent.configuration).toEqual({
      vendor: "x",
      limits: { b: 2 },
      geolocation: { latitude: 51.4, longitude: -2.5 },
    });
    const merges = Array.from({ length: 5 }, (_, i) => post({ configuration: { [`k${i}`]: i } }, token));
    expect((await Promise.all(merges)).every(({ status }) => status === 200)).toBe(true);
    const merged = (await (await send("GET", `/api/v1/agents/${apId}`, undefined, token)).json()) as {
      configuration: object;
    };
    expect(merged.configuration).toMatchObject({ k0: 0, k1: 1, k2: 2, k3: 3, k4: 4 });
  });

  it("does not let a configuration grow without end, key by key", async () => {
    const { apId, token } = await newAgent();
    const statuses: number[] = [];
    for (const key of ["a", "b"]) {
      // In bytes, not in characters: these take three each.
      statuses.push((await post({ configuration: { [key]: "網".repeat(200_000) } }, token)).status);
    }
    expect(statuses).toEqual([200, 413]);
    const agent = (await (await send("GET", `/api/v1/agents/${apId}`, undefined, token)).json()) as {
      configuration: object;
    };
    expect(Object.keys(agent.configuration)).toEqual(["a"]);
  });

  it("is refused whole where a sample lies in the future, or is another's", async () => {
    const { apId, token } = await newAgent();
    const ahead = secondsAgo(-301);
    const response = await post(
      {
        payload: { a: 1 },
        samples: [
          { ts: secondsAgo(1), payload: { a: 2 } },
          { ts: ahead, payload: { a: 3 } },
        ],
      },
      token,
    );
    expect(response.status).toBe(422);
    expect(await response.json()).toMatchObject({
      detail: [{ loc: ["body", "samples", 1, "ts"], type: "value_error" }],
    });
    expect(await (await post({ payload: { a: 1 }, ts: ahead }, token)).json()).toMatchObject({
      detail: [{ loc: ["body", "ts"] }],
    });
    expect((await post({ ap_id: uniqueName(), a: 1 }, token)).status).toBe(403);
    expect((await data(apId, token)).series).toEqual([]);
  });

  it.each([
    [{ payload: 1 }, ["payload"], "dict_type"],
    [1, [], "dict_type"],
    [[], [], "dict_type"],
    [{ configuration: "x" }, ["configuration"], "dict_type"],
    [{ ts: "yesterday", payload: {} }, ["ts"], "datetime_from_date_parsing"],
    [{ ts: "2026-02-30T00:00:00Z", payload: {} }, ["ts"], "datetime_from_date_parsing"],
    [{ samples: [{ ts: "2026-13-01", payload: {} }] }, ["samples", 0, "ts"], "datetime_from_date_parsing"],
    [{ samples: [{ payload: {} }] }, ["samples", 0, "ts"], "missing"],
    [{ samples: Array.from({ length: 1001 }, () => ({ ts: 1, payload: {} })) }, ["samples"], "too_long"],
    [{ geolocation: { lat: 91, lon: 0 } }, ["geolocation", "latitude"], "less_than_equal"],
  ])("is 422 where it makes no sense: %#", async (body, where, type) => {
    const { token } = await newAgent();
    const response = await post(body, token);
    expect(response.status).toBe(422);
    expect(await response.json()).toMatchObject({ detail: [{ loc: ["body", ...where], type }] });
  });

  it("goes in and comes out the same: any names, any numbers, any texts, any times", async () => {
    const name = anyText({ minLength: 1, maxLength: 40 }).filter((text) => !text.includes("__proto__"));
    const number = fc.double({ noNaN: true, noDefaultInfinity: true });
    const field = fc.oneof(number, fc.integer(), fc.boolean(), anyText({ maxLength: 40 }));
    const isStored = ([metric, value]: [string, unknown]) =>
      metric.isWellFormed() && (typeof value !== "string" || value.isWellFormed());
    await fc.assert(
      fc.asyncProperty(
        fc.uniqueArray(
          fc.record({
            ageMs: fc.integer({ min: 1, max: 200_000 }),
            payload: fc.dictionary(name, field, { minKeys: 1, maxKeys: 6 }),
          }),
          { selector: ({ ageMs }) => ageMs, minLength: 1, maxLength: 8 },
        ),
        async (drawn) => {
          const { apId, token } = await newAgent();
          const nowMs = Date.now();
          const samples = drawn.map(({ ageMs, payload }) => ({ ts: new Date(nowMs - ageMs).toISOString(), payload }));
          const answer = (await (await post({ samples }, token)).json()) as { rejected: { field: string }[] };
          expect(answer.rejected.map(({ field }) => field)).toEqual(
            samples.flatMap(({ payload }) =>
              Object.entries(payload).flatMap((entry) => (isStored(entry) ? [] : [entry[0]])),
            ),
          );
          const stored = (await data(apId, token)).series.flatMap(({ metric, points }) =>
            points.map(({ ts, value }) => `${ts} ${JSON.stringify(metric)} ${JSON.stringify(value)}`),
          );
          const sent = samples.flatMap(({ ts, payload }) =>
            Object.entries(payload)
              .filter(isStored)
              .map(
                ([metric, value]) =>
                  `${ts} ${JSON.stringify(metric)} ${JSON.stringify(typeof value === "boolean" ? Number(value) : value)}`,
              ),
          );
          expect(stored.toSorted()).toEqual(sent.toSorted());
        },
      ),
      { numRuns: 12 },
    );
  }, 60_000);

  it("is rejected by name if a name or a text has a lone surrogate, and the rest is stored", async () => {
    const { apId, token } = await newAgent();
    const payload = {
      ok: 1,
      high: "a\ud800",
      low: "\udfffb",
      "name\udc00": 2,
      in: { "\ud83d": "x" },
      pair: "\u{1F4A1}",
    };
    expect(await (await post({ payload }, token)).json()).toMatchObject({
      accepted: 2,
      rejected: [
        { field: "high", reason: "is a text with a lone surrogate" },
        { field: "low", reason: "is a text with a lone surrogate" },
        { field: "name\udc00", reason: "has a name with a lone surrogate" },
        { field: "in.\ud83d", reason: "has a name with a lone surrogate" },
      ],
    });
    expect(values((await data(apId, token)).series)).toEqual({ ok: [1], pair: ["\u{1F4A1}"] });
  });

  it("does not fail because of another agent's lone surrogate in the same moment", async () => {
    const agents = await Promise.all(Array.from({ length: 6 }, () => newAgent()));
    const answers = await Promise.all(
      agents.map(({ token }, i) => post(i % 2 === 0 ? { x: i } : { x: i, "bad\ud800": "\udc00" }, token)),
    );
    expect(answers.map(({ status }) => status)).toEqual(agents.map(() => 200));
    for (const [i, { apId, token }] of agents.entries())
      expect(values((await multi(apId, token, "x")).series)).toEqual({ x: [i] });
  });

  it("is rejected by its time if it is older than telemetry is kept, and the rest is stored", async () => {
    const { apId, token } = await newAgent();
    const day = 86_400_000;
    const kept = Date.now() - 29 * day;
    const samples = [kept, Date.now() - 30 * day - 1_000, kept + 1, 0].map((ts, a) => ({ ts, payload: { a } }));
    const reason = "is more than 30 days old";
    expect(await (await post({ samples, payload: { b: 1 }, ts: "2001-01-01" }, token)).json()).toEqual({
      status: "success",
      detail: "2 values stored",
      accepted: 2,
      rejected: ["ts", "samples.1.ts", "samples.3.ts"].map((field) => ({ field, reason })),
    });
    expect(values((await multi(apId, token, "a,b", "&window=31d")).series)).toEqual({ a: [0, 2], b: [] });
  });

  it("creates only a few parts, also from a backlog of 200 days", async () => {
    const { apId, token } = await newAgent();
    const samples = Array.from({ length: 200 }, (_, day) => ({
      ts: Date.now() - day * 86_400_000,
      payload: { a: day, t: "x" },
    }));
    expect((await post({ samples }, token)).status).toBe(200);
    const parts = await createClickHouse(parseEnv(env)).run(async (client) => {
      const query = `SELECT uniqExact(_part) AS n FROM points_v1 WHERE ap_id = {ap_id:String}
                     UNION ALL SELECT uniqExact(_part) FROM texts_v1 WHERE ap_id = {ap_id:String}`;
      const answer = await client.query({ query, query_params: { ap_id: apId }, format: "JSONEachRow" });
      return (await answer.json<{ n: string }>()).map(({ n }) => Number(n));
    });
    // 30 days are in five or six weeks.
    for (const n of parts) expect(n).toBeLessThanOrEqual(6);
  });

  it("may have ten thousand fields with names of any kind", async () => {
    const { apId, token } = await newAgent();
    const odd = [
      "a'b",
      'a"b',
      "a\\b",
      "'; DROP TABLE points_v1; --",
      "{x:String}",
      "ü",
      "密",
      "🔑",
      "constructor",
      "a\nb",
    ];
    const payload = Object.fromEntries(
      [...odd, ...Array.from({ length: 9_990 }, (_, i) => `f${i}`)].map((name, i) => [name, i]),
    );
    expect(await (await post({ payload }, token)).json()).toMatchObject({ accepted: 10_000, rejected: [] });
    expect(values((await multi(apId, token, odd.map(encodeURIComponent).join("&metrics="))).series)).toEqual(
      Object.fromEntries(odd.map((name, i) => [name, [i]])),
    );
  });
});

describe("what a bridge brings", () => {
  it("is stored but for the field with a lone surrogate, which is named", async () => {
    const { token } = await newApp({ broker: true });
    const [one, two] = await Promise.all([newAgent(), newAgent()]);
    const said = ({ apId }: { apId: string }, report: object) => ({ ap_id: apId, received_at: Date.now(), report });
    const messages = [said(one, { a: 1, t: "\udc00" }), said(two, { a: 2 })];
    const response = await send("POST", "/api/v1/bridge/data", { messages }, token);
    expect(await response.json()).toMatchObject({
      results: [
        { accepted: 1, rejected: [{ field: "t", reason: "is a text with a lone surrogate" }] },
        { accepted: 1, rejected: [] },
      ],
    });
  });

  it("fails for that message only whose sample the store rejects for a reason that is not known", async () => {
    const { token } = await newApp({ broker: true });
    const [one, two] = await Promise.all([newAgent(), newAgent()]);
    const { AGENT_SHARD: all } = env;
    const get = () => ({ append: async () => ({ rejected: [1] }) });
    const AGENT_SHARD = { idFromName: all.idFromName.bind(all), get } as unknown as typeof all;
    const app = appWith({ AGENT_SHARDS: "1" }, { AGENT_SHARD });
    const ask = async (path: string, body: object, token: string) =>
      await app.request(path, {
        method: "POST",
        headers: { ...bearer(token), "Content-Type": "application/json" },
        body: JSON.stringify(body),
      });
    const messages = [one, two].map(({ apId }) => ({ ap_id: apId, received_at: Date.now(), report: { a: 1 } }));
    const delivered = await ask("/api/v1/bridge/data", { messages }, token);
    expect(await delivered.json()).toMatchObject({ results: [{ accepted: 1 }, { error: "Internal Server Error" }] });
    const samples = [1, 2].map((a) => ({ ts: Date.now() - a, payload: { a } }));
    const statuses = await Promise.all([
      ask("/api/v1/agent_update/update", { a: 1 }, one.token),
      ask("/api/v1/agent_update/update", { samples }, two.token),
    ]);
    // Of these three samples, which came in one call, the second is rejected.
    expect(statuses.map(({ status }) => status)).toEqual([200, 500]);
  });

  it("is stored for each agent that is known, and what cannot be is named", async () => {
    const { token } = await newApp({ broker: true });
    const [one, two] = await Promise.all([newAgent(), newAgent()]);
    const received_at = Date.now() - 1_000;
    const messages = [
      { ap_id: one.apId, received_at, report: { a: 1, list: [] } },
      {
        ap_id: two.apId,
        received_at,
        report: { samples: [{ ts: received_at, payload: { a: 2 } }], configuration: { k: 1 } },
      },
      { ap_id: uniqueName(), received_at, report: { a: 3 } },
      { ap_id: one.apId, received_at, report: ["not an object"] },
      { ap_id: one.apId, received_at, report: { ap_id: two.apId, a: 4 } },
    ];
    for (let i = 0; i < 2; i++) {
      const response = await send("POST", "/api/v1/bridge/data", { messages }, token);
      expect(await response.json()).toEqual({
        status: "success",
        results: [
          { accepted: 1, rejected: [{ field: "list", reason: "is an array" }] },
          { accepted: 1, rejected: [] },
          { error: "Agent not found" },
          { error: "Input should be a valid dictionary" },
          { error: "Not enough permissions" },
        ],
      });
    }
    expect(values((await multi(one.apId, one.token, "a")).series)).toEqual({ a: [1] });
    expect(values((await multi(two.apId, two.token, "a")).series)).toEqual({ a: [2] });
  });
});

describe("the question whether the telemetry store is there", () => {
  it("is answered with no where its disk is as good as full", async () => {
    await createClickHouse(parseEnv(env)).check();
    const full = createClickHouse(parseEnv(env), Number.MAX_SAFE_INTEGER);
    await expect(full.check()).rejects.toThrow(Unavailable);
  });
});

describe("a read that nobody waits for any more", () => {
  it("is cut off on the server", async () => {
    const clickhouse = createClickHouse(parseEnv(env));
    // The Worker's own login may not look at what runs.
    const { CLICKHOUSE_OWNER, CLICKHOUSE_OWNER_PASSWORD } = settings;
    const owner = { CLICKHOUSE_USER: CLICKHOUSE_OWNER, CLICKHOUSE_PASSWORD: CLICKHOUSE_OWNER_PASSWORD };
    const watcher = createClickHouse(parseEnv({ ...env, ...owner }));
    const mark = uniqueName();
    const running = async () =>
      await watcher.run(async (client) => {
        const answer = await client.query({
          query: "SELECT query_id FROM system.processes WHERE query_id = {mark:String}",
          query_params: { mark },
          format: "JSONEachRow",
        });
        return (await answer.json()).length;
      });
    const gone = new AbortController();
    const read = clickhouse.run((client) =>
      client.query({
        query: "SELECT sleepEachRow(1) FROM numbers(120)",
        query_id: mark,
        clickhouse_settings: { ...READ_SETTINGS, max_block_size: "1", function_sleep_max_microseconds_per_block: "0" },
        abort_signal: gone.signal,
      }),
    );
    await expect.poll(running, { timeout: 10_000 }).toBe(1);
    gone.abort();
    await expect(read).rejects.toThrow(Unavailable);
    await expect.poll(running, { timeout: 10_000 }).toBe(0);
  }, 30_000);
});

describe("metrics", () => {
  it.each([
    ["", 5],
    ["&window=1", 1],
    ["&window=30s", 1],
    ["&window=90s", 2],
    ["&window=1h", 60],
    ["&window=2d", 2880],
    ["&window=1w", 10_080],
    ["&window=31d", 44_640],
  ])("look back over a window: %j is %i minutes", async (query, minutes) => {
    const { apId, token } = await newAgent();
    expect((await multi(apId, token, "a", query)).window_minutes).toBe(minutes);
  });

  it.each(["0", "32d", "-1", "1y", "x", "1.5", "99999999999999999999"])("have no window of %j", async (window) => {
    const { apId, token } = await newAgent();
    const response = await get(`agent_metrics?agent=${apId}&window=${window}`, token);
    expect(response.status).toBe(422);
    expect(await response.json()).toMatchObject({ detail: [{ loc: ["query", "window"], type: "value_error" }] });
  });

  it("leave out what is older than the window, or not newer than `since`", async () => {
    const { apId, token } = await newAgent();
    const [old, middle, fresh] = [secondsAgo(400), secondsAgo(100), secondsAgo(10)];
    await post({ samples: [old, middle, fresh].map((ts, a) => ({ ts, payload: { a } })) }, token);
    expect(values((await multi(apId, token, "a")).series)).toEqual({ a: [1, 2] });
    expect(values((await multi(apId, token, "a", "&window=10")).series)).toEqual({ a: [0, 1, 2] });
    expect(values((await multi(apId, token, "a", `&since=${middle}`)).series)).toEqual({ a: [2] });
  });

  it("come in the order asked for, repeated or with commas, also those that have no points", async () => {
    const { apId, token } = await newAgent();
    await post({ a: 1, b: 2 }, token);
    expect(values((await multi(apId, token, "b,none&metrics=a,b")).series)).toEqual({ b: [2], none: [], a: [1] });
    const many = Array.from({ length: 51 }, (_, i) => `m${i}`).join(",");
    for (const [metrics, type, msg] of [
      [many, "too_long", "List should have at most 50 items after validation, not 51"],
      ["", "too_short", "List should have at least 1 item after validation, not 0"],
    ]) {
      const response = await get(`agent_multi_metric_data?agent=${apId}&metrics=${metrics}`, token);
      expect(response.status).toBe(422);
      expect(await response.json()).toEqual({ detail: [{ loc: ["query", "metrics"], msg, type }] });
    }
    const impossible = await get(`agent_multi_metric_data?agent=${apId}&metrics=a&since=2026-02-30T00:00:00Z`, token);
    expect(await impossible.json()).toMatchObject({
      detail: [{ loc: ["query", "since"], type: "datetime_from_date_parsing" }],
    });
    expect((await get(`agent_multi_metric_data?agent=${apId}`, token)).status).toBe(422);
  });

  it("are averaged over equal spans where there are more than 2,000 points, and say so", async () => {
    const { apId, token } = await newAgent();
    const nowMs = Date.now();
    for (let part = 0; part < 3; part++) {
      const samples = Array.from({ length: 1_000 }, (_, i) => ({
        ts: nowMs - (part * 1_000 + i) * 1_000,
        payload: { many: 7, ...(i < 10 && { few: i }) },
      }));
      expect((await post({ samples }, token)).status).toBe(200);
    }
    const [many, few] = (await multi(apId, token, "many,few", "&window=1h")).series;
    expect(many?.bucket_ms).toBeGreaterThan(0);
    expect(many?.points.length).toBeLessThanOrEqual(2_000);
    expect(new Set(many?.points.map(({ value }) => value))).toEqual(new Set([7]));
    expect(few?.bucket_ms).toBeUndefined();
    expect(few?.points).toHaveLength(30);
    const times = many?.points.map(({ ts }) => ts) ?? [];
    expect(times).toEqual(times.toSorted());
  });

  it("over days are means over whole minutes; what is sent twice counts once, what is sparse stays as it is", async () => {
    const { apId, token } = await newAgent();
    const startMs = Math.floor(Date.now() / 60_000) * 60_000 - 30 * 3_600_000;
    const samples = Array.from({ length: 3_000 }, (_, i) => ({
      ts: startMs + i * 36_000,
      payload: { many: i % 7, ...(i % 300 === 0 && { few: i }), ...(i === 0 && { huge: Number.MAX_VALUE }) },
    }));
    for (const part of [
      samples.slice(0, 1_000),
      samples.slice(1_000, 2_000),
      samples.slice(2_000),
      samples.slice(500, 700),
    ]) {
      expect((await post({ samples: part }, token)).status).toBe(200);
    }
    const [many, few, huge] = (await multi(apId, token, "many,few,huge", "&window=7d")).series;
    const bucketMs = many?.bucket_ms ?? 0;
    expect([bucketMs % 60_000, few?.bucket_ms, few?.points.length, huge?.points.length]).toEqual([0, undefined, 10, 1]);
    expect(bucketMs).toBeGreaterThanOrEqual((7 * 86_400_000) / 2_000);
    const starts = many?.points.map(({ ts }) => Date.parse(ts)) ?? [];
    const means = starts.map((start) => {
      // A minute belongs to the span that it begins in.
      const its = samples.filter(({ ts }) => Math.floor((Math.floor(ts / 60_000) * 60_000 - start) / bucketMs) === 0);
      return its.reduce((sum, { payload }) => sum + payload.many, 0) / its.length;
    });
    expect(starts.length).toBeGreaterThan(250);
    for (const [i, point] of (many?.points ?? []).entries()) expect(point.value).toBeCloseTo(means[i] ?? Number.NaN, 9);
  });

  it("are listed with readable names", async () => {
    const { apId, token } = await newAgent();
    await post({ "DRB.UEThpDl": 1, rx_rate_mbps: 2, someThing: 3, text: "x" }, token);
    const response = await get(`agent_metrics?agent=${apId}`, token);
    expect(await response.json()).toEqual({
      agent_id: apId,
      window_minutes: 5,
      metrics: [
        { name: "DRB.UEThpDl", label: "Throughput per user, downlink (kbit/s)" },
        { name: "rx_rate_mbps", label: "Rx rate (Mbit/s)" },
        { name: "someThing", label: "Some Thing" },
      ],
    });
  });

  it("of an agent that does not exist are 404", async () => {
    const { token } = await signedUp();
    expect((await get(`agent_data?agent=${uniqueName()}`, token)).status).toBe(404);
  });

  it("tell which agents are there, by the time of receipt and not by the agents' clocks", async () => {
    const { token: bridge } = await newApp({ broker: true });
    const startMs = Date.now();
    const [quiet, fresh, behind, ahead, lost, onboarding, late, slow, silent, boasting] = await Promise.all([
      newAgent(),
      newAgent(),
      newAgent(),
      newAgent(),
      newAgent(),
      newAgent(),
      newAgent(),
      newAgent({ interval: 60 }),
      newAgent(),
      newAgent({ interval: 1e12 }),
    ]);
    await post({ a: 1 }, fresh.token);
    await post({ a: 1, ts: secondsAgo(40) }, behind.token);
    await post({ a: "only text", ts: secondsAgo(-290) }, ahead.token);
    // Nothing of it is stored, but the agent is there.
    await post({ a: 1, ts: 0 }, lost.token);
    await post({ configuration: { k: 1 } }, onboarding.token);
    const said = ({ apId }: { apId: string }, received_at: number) => ({ ap_id: apId, received_at, report: { a: 1 } });
    const minuteAgo = startMs - 60_000;
    const messages = [
      said(late, startMs + 200_000),
      said(slow, minuteAgo),
      said(silent, minuteAgo),
      said(boasting, startMs - 4 * 3_600_000),
    ];
    expect((await send("POST", "/api/v1/bridge/data", { messages }, bridge)).status).toBe(200);
    const response = await send("GET", "/api/v1/agents/", undefined, await adminToken());
    const states = (await response.json()) as { ap_id: string; online: boolean; last_seen: string | null }[];
    const stateOf = ({ apId }: { apId: string }) => states.find(({ ap_id }) => ap_id === apId);
    expect(stateOf(quiet)).toMatchObject({ online: false, last_seen: null, onboard: true });
    for (const agent of [fresh, behind, ahead, lost, onboarding, late]) {
      const { online, last_seen } = stateOf(agent) ?? {};
      const seenMs = Date.parse(last_seen ?? "");
      expect([online, seenMs >= startMs, seenMs <= Date.now()]).toEqual([true, true, true]);
    }
    expect(stateOf(slow)).toMatchObject({ online: true, last_seen: new Date(minuteAgo).toISOString() });
    expect(stateOf(silent)).toMatchObject({ online: false, last_seen: new Date(minuteAgo).toISOString() });
    expect(stateOf(boasting)).toMatchObject({ online: false });
  });

  it("tell that an agent is there that repeats the same sample", async () => {
    const { apId, token } = await newAgent();
    const seen = async () => {
      const response = await send("GET", "/api/v1/agents/", undefined, (await newApp({ ap_ids: [apId] })).token);
      return ((await response.json()) as { last_seen: string }[]).map(({ last_seen }) => Date.parse(last_seen));
    };
    const sample = { a: 1, ts: Date.now() };
    await post(sample, token);
    const [firstMs = 0] = await seen();
    await post(sample, token);
    expect((await seen())[0]).toBeGreaterThan(firstMs);
  });

  it("come for an app with 5,000 long names", async () => {
    const { apId, token } = await newAgent({ a: 1 });
    await post({ a: 1 }, token);
    const names = Array.from({ length: 5_000 }, (_, i) => `${uniqueName()}-`.padEnd(64, String(i)));
    const app = await newApp({ ap_ids: [...names, apId] });
    const response = await send("GET", "/api/v1/agents/", undefined, app.token);
    expect(await response.json()).toMatchObject([{ ap_id: apId, online: true }]);
    expect(await (await get("agent_details", app.token)).json()).toMatchObject([{ ap_id: apId }]);
  });

  it("come with the agents themselves, of which an app sees its own only", async () => {
    const { apId } = await newAgent({ a: 1 });
    const record = { id: expect.any(String), ap_id: apId, configuration: { a: 1 }, onboard: true };
    expect(await (await get("agent_details", await adminToken())).json()).toContainEqual(record);
    const { token } = await newApp({ ap_ids: [apId] });
    expect(await (await get("agent_details", token)).json()).toEqual([record]);
  });
});
