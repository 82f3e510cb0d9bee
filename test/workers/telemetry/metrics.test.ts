import { env } from "cloudflare:test";
import { describe, expect, it } from "vitest";
import { parseEnv } from "../../../src/env.ts";
import { Unavailable } from "../../../src/lib/errors.ts";
import { createClickHouse } from "../../../src/storage/clickhouse.ts";
import { READ_SETTINGS } from "../../../src/telemetry/store/clickhouse-query.ts";
import { adminToken, newAgent, newApp, send, settings, signedUp, uniqueName } from "../support.ts";
import { get, multi, post, secondsAgo, values } from "./requests.ts";

describe("the health check of the telemetry store", () => {
  it("fails if the disk is almost full", async () => {
    await createClickHouse(parseEnv(env)).check();
    const full = createClickHouse(parseEnv(env), Number.MAX_SAFE_INTEGER);
    await expect(full.check()).rejects.toThrow(Unavailable);
  });
});

describe("an aborted read", () => {
  it("is cancelled on the server", async () => {
    const clickhouse = createClickHouse(parseEnv(env));
    // The Worker's ClickHouse user may not read `system.processes`.
    const { CLICKHOUSE_OWNER, CLICKHOUSE_OWNER_PASSWORD } = settings;
    const owner = { CLICKHOUSE_USER: CLICKHOUSE_OWNER, CLICKHOUSE_PASSWORD: CLICKHOUSE_OWNER_PASSWORD };
    const watcher = createClickHouse(parseEnv({ ...env, ...owner }));
    const mark = uniqueName();
    const running = async () =>
      await watcher.run(async (client) => {
        const response = await client.query({
          query: "SELECT query_id FROM system.processes WHERE query_id = {mark:String}",
          query_params: { mark },
          format: "JSONEachRow",
        });
        return (await response.json()).length;
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
  ])("cover a window: %j is %i minutes", async (query, minutes) => {
    const { apId, token } = await newAgent();
    expect((await multi(apId, token, "a", query)).window_minutes).toBe(minutes);
  });

  it.each(["0", "32d", "-1", "1y", "x", "1.5", "99999999999999999999"])(
    "reject the window %j with 422",
    async (window) => {
      const { apId, token } = await newAgent();
      const response = await get(`agent_metrics?agent=${apId}&window=${window}`, token);
      expect(response.status).toBe(422);
      expect(await response.json()).toMatchObject({ detail: [{ loc: ["query", "window"], type: "value_error" }] });
    },
  );

  it("omit points older than the window or not newer than `since`", async () => {
    const { apId, token } = await newAgent();
    const [old, middle, fresh] = [secondsAgo(400), secondsAgo(100), secondsAgo(10)];
    await post({ samples: [old, middle, fresh].map((ts, a) => ({ ts, payload: { a } })) }, token);
    expect(values((await multi(apId, token, "a")).series)).toEqual({ a: [1, 2] });
    expect(values((await multi(apId, token, "a", "&window=10")).series)).toEqual({ a: [0, 1, 2] });
    expect(values((await multi(apId, token, "a", `&since=${middle}`)).series)).toEqual({ a: [2] });
  });

  it("are returned in the requested order, repeated or with commas, including those without points", async () => {
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

  it("with more than 2,000 points are averaged over equal buckets, and the bucket length is returned", async () => {
    const { apId, token } = await newAgent();
    const nowMs = Date.now();
    for (let chunk = 0; chunk < 3; chunk++) {
      const samples = Array.from({ length: 1_000 }, (_, i) => ({
        ts: nowMs - (chunk * 1_000 + i) * 1_000,
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

  it("over days are means over whole minutes; duplicates count once, sparse metrics keep their points", async () => {
    const { apId, token } = await newAgent();
    const startMs = Math.floor(Date.now() / 60_000) * 60_000 - 30 * 3_600_000;
    const samples = Array.from({ length: 3_000 }, (_, i) => ({
      ts: startMs + i * 36_000,
      payload: { many: i % 7, ...(i % 300 === 0 && { few: i }), ...(i === 0 && { huge: Number.MAX_VALUE }) },
    }));
    for (const chunk of [
      samples.slice(0, 1_000),
      samples.slice(1_000, 2_000),
      samples.slice(2_000),
      samples.slice(500, 700),
    ]) {
      expect((await post({ samples: chunk }, token)).status).toBe(200);
    }
    const [many, few, huge] = (await multi(apId, token, "many,few,huge", "&window=7d")).series;
    const bucketMs = many?.bucket_ms ?? 0;
    expect([bucketMs % 60_000, few?.bucket_ms, few?.points.length, huge?.points.length]).toEqual([0, undefined, 10, 1]);
    expect(bucketMs).toBeGreaterThanOrEqual((7 * 86_400_000) / 2_000);
    const starts = many?.points.map(({ ts }) => Date.parse(ts)) ?? [];
    const means = starts.map((start) => {
      // A minute belongs to the bucket in which it begins.
      const inBucket = samples.filter(
        ({ ts }) => Math.floor((Math.floor(ts / 60_000) * 60_000 - start) / bucketMs) === 0,
      );
      return inBucket.reduce((sum, { payload }) => sum + payload.many, 0) / inBucket.length;
    });
    expect(starts.length).toBeGreaterThan(250);
    for (const [i, point] of (many?.points ?? []).entries()) expect(point.value).toBeCloseTo(means[i] ?? Number.NaN, 9);
  });

  it("are listed with display names", async () => {
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

  it("return 404 for an agent that does not exist", async () => {
    const { token } = await signedUp();
    expect((await get(`agent_data?agent=${uniqueName()}`, token)).status).toBe(404);
  });

  it("show which agents are online, by the time of receipt and not by the agents' clocks", async () => {
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
    // No value is stored, but the agent is online.
    await post({ a: 1, ts: 0 }, lost.token);
    await post({ configuration: { k: 1 } }, onboarding.token);
    const messageOf = ({ apId }: { apId: string }, received_at: number) => ({
      ap_id: apId,
      received_at,
      report: { a: 1 },
    });
    const minuteAgo = startMs - 60_000;
    const messages = [
      messageOf(late, startMs + 200_000),
      messageOf(slow, minuteAgo),
      messageOf(silent, minuteAgo),
      messageOf(boasting, startMs - 4 * 3_600_000),
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

  it("show an agent as online that repeats the same sample", async () => {
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

  it("are returned to an app with 5,000 long agent names", async () => {
    const { apId, token } = await newAgent({ a: 1 });
    await post({ a: 1 }, token);
    const names = Array.from({ length: 5_000 }, (_, i) => `${uniqueName()}-`.padEnd(64, String(i)));
    const app = await newApp({ ap_ids: [...names, apId] });
    const response = await send("GET", "/api/v1/agents/", undefined, app.token);
    expect(await response.json()).toMatchObject([{ ap_id: apId, online: true }]);
    expect(await (await get("agent_details", app.token)).json()).toMatchObject([{ ap_id: apId }]);
  });

  it("include the agents, of which an app sees only its own", async () => {
    const { apId } = await newAgent({ a: 1 });
    const record = { id: expect.any(String), ap_id: apId, configuration: { a: 1 }, onboard: true };
    expect(await (await get("agent_details", await adminToken())).json()).toContainEqual(record);
    const { token } = await newApp({ ap_ids: [apId] });
    expect(await (await get("agent_details", token)).json()).toEqual([record]);
  });
});
