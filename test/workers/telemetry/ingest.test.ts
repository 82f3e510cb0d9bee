import { env } from "cloudflare:test";
import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { parseEnv } from "../../../src/env.ts";
import { createClickHouse } from "../../../src/storage/clickhouse.ts";
import { anyText, newAgent, send, uniqueName } from "../support.ts";
import { data, multi, post, secondsAgo, values } from "./requests.ts";

describe("a report of an agent", () => {
  it("is visible to the next request, in every form", async () => {
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
      const body = await (await post(form, token)).json();
      expect(body).toMatchObject({ status: "success", accepted: "samples" in form ? 2 : 1, rejected: [] });
    }
    expect(values((await multi(apId, token, "a")).series)).toEqual({ a: [1, 2, 3, 4, 5, 6] });
  });

  it("is flattened: numbers and booleans become metrics, strings texts, other values are rejected by name", async () => {
    const { apId, token } = await newAgent();
    const payload = '{"cpu":{"load":0.5,"ok":true},"name":"x","list":[1],"none":null,"huge":1e999,"cpu.load":2}';
    const body = await (await post(`{"payload":${payload}}`, token)).json();
    expect(body).toEqual({
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

  it("may contain texts of up to 16,384 characters", async () => {
    const { apId, token } = await newAgent();
    const payload = { fits: "x".repeat(16_384), long: "x".repeat(16_385) };
    expect(await (await post({ payload }, token)).json()).toMatchObject({
      accepted: 1,
      rejected: [{ field: "long", reason: "is a text of more than 16384 characters" }],
    });
    expect(values((await data(apId, token)).series)).toEqual({ fits: [payload.fits] });
  });

  it("is stored once if sent twice, with the first values", async () => {
    const { apId, token } = await newAgent();
    const sample = { ts: secondsAgo(5), payload: { a: 1, b: "x" } };
    for (let i = 0; i < 3; i++) await post(sample, token);
    await post({ ...sample, payload: { a: 2, c: 3 } }, token);
    expect(values((await data(apId, token)).series)).toEqual({ a: [1], b: ["x"], c: [3] });
  });

  it("is stored for each of many concurrent agents", async () => {
    const agents = await Promise.all(Array.from({ length: 20 }, () => newAgent()));
    const responses = await Promise.all(agents.map(({ token }, i) => post({ x: i }, token)));
    expect(new Set(responses.map(({ status }) => status))).toEqual(new Set([200]));
    for (const [i, { apId, token }] of agents.entries()) {
      expect(values((await multi(apId, token, "x")).series)).toEqual({ x: [i] });
    }
  });

  it("merges its configuration and geolocation into the agent, key by key", async () => {
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

  it("is rejected with 413 if the merged configuration gets too large", async () => {
    const { apId, token } = await newAgent();
    const statuses: number[] = [];
    for (const key of ["a", "b"]) {
      // The limit is in bytes, and each of these characters has three.
      statuses.push((await post({ configuration: { [key]: "網".repeat(200_000) } }, token)).status);
    }
    expect(statuses).toEqual([200, 413]);
    const agent = (await (await send("GET", `/api/v1/agents/${apId}`, undefined, token)).json()) as {
      configuration: object;
    };
    expect(Object.keys(agent.configuration)).toEqual(["a"]);
  });

  it("is rejected as a whole if a sample is in the future or names another agent", async () => {
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
  ])("is rejected with 422 if it is invalid: %#", async (body, path, type) => {
    const { token } = await newAgent();
    const response = await post(body, token);
    expect(response.status).toBe(422);
    expect(await response.json()).toMatchObject({ detail: [{ loc: ["body", ...path], type }] });
  });

  it("is returned as it was sent: any names, numbers, texts and times", async () => {
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
          const response = (await (await post({ samples }, token)).json()) as { rejected: { field: string }[] };
          expect(response.rejected.map(({ field }) => field)).toEqual(
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

  it("is rejected with short names if names are long, however many values have them", async () => {
    const { apId, token } = await newAgent();
    const valuesOf = (count: number) => Object.fromEntries(Array.from({ length: count }, (_, i) => [`v${i}`, 1]));
    const many = valuesOf(10_000);
    for (const key of ["k".repeat(300_000), "漢".repeat(100_000)]) {
      const text = await (await post({ payload: { ok: 1, [key]: many, deep: { [key]: { many } } } }, token)).text();
      expect(text.length).toBeLessThan(1_000);
      const reason = "has a name of more than 256 characters";
      expect(JSON.parse(text)).toMatchObject({ accepted: 1, rejected: [{ reason }, { reason }] });
    }
    // Each name could be stored, but they repeat the name of the object.
    const response = await post({ payload: { ["k".repeat(249)]: valuesOf(20_000) } }, token);
    expect(response.status).toBe(413);
    expect(await response.json()).toEqual({ detail: "The names of all values together are too large" });
    expect(Object.keys(values((await data(apId, token)).series))).toEqual(["ok"]);
  });

  it("is accepted despite a concurrent report with a lone surrogate", async () => {
    const agents = await Promise.all(Array.from({ length: 6 }, () => newAgent()));
    const responses = await Promise.all(
      agents.map(({ token }, i) => post(i % 2 === 0 ? { x: i } : { x: i, "bad\ud800": "\udc00" }, token)),
    );
    expect(responses.map(({ status }) => status)).toEqual(agents.map(() => 200));
    for (const [i, { apId, token }] of agents.entries())
      expect(values((await multi(apId, token, "x")).series)).toEqual({ x: [i] });
  });

  it("has samples older than the retention rejected by their time, and the rest stored", async () => {
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

  it("creates only a few ClickHouse parts, even for a backlog of 200 days", async () => {
    const { apId, token } = await newAgent();
    const samples = Array.from({ length: 200 }, (_, day) => ({
      ts: Date.now() - day * 86_400_000,
      payload: { a: day, t: "x" },
    }));
    expect((await post({ samples }, token)).status).toBe(200);
    const parts = await createClickHouse(parseEnv(env)).run(async (client) => {
      const query = `SELECT uniqExact(_part) AS n FROM points_v1 WHERE ap_id = {ap_id:String}
                     UNION ALL SELECT uniqExact(_part) FROM texts_v1 WHERE ap_id = {ap_id:String}`;
      const response = await client.query({ query, query_params: { ap_id: apId }, format: "JSONEachRow" });
      return (await response.json<{ n: string }>()).map(({ n }) => Number(n));
    });
    // 30 days touch up to six weeks, and one week has both current samples and a backlog.
    for (const n of parts) expect(n).toBeLessThanOrEqual(7);
  });

  it("may have ten thousand fields with unusual names", async () => {
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
