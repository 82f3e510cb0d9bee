import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { ScopedAgent } from "../../../src/auth/agent-scope.ts";
import type { Actor } from "../../../src/auth/identity.ts";
import { createAggregates } from "../../../src/fleet/aggregates.ts";
import type { Aggregate, Statistic } from "../../../src/schemas/metrics.ts";
import { RecentMinutes, type RecentSums } from "../../../src/telemetry/shard/recent-minutes.ts";
import type { AgentSample } from "../../../src/telemetry/store/telemetry-store.ts";
import { adminToken, newAgent, newApp, send, settings, signedUp, testStore, tokenOf, uniqueName } from "../support.ts";
import { get, post } from "./requests.ts";

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;
const STATISTICS = ["avg", "sum", "min", "max", "p50", "p95", "count"] as const;
/** Whole minutes of the last hours, whose data no other test changes. */
const startMs = Math.floor(Date.now() / HOUR_MS) * HOUR_MS - 3 * HOUR_MS;
const PERIOD = `&start_time=${startMs}&end_time=${startMs + 10 * MINUTE_MS}`;

const aggregate = async (token: string, query: string): Promise<Aggregate> => {
  const response = await get(`aggregate?${query}`, token);
  expect(response.status, await response.clone().text()).toBe(200);
  return (await response.json()) as Aggregate;
};
/** Returns the values of each group, by the values of its labels. */
const valuesOf = ({ groups }: Aggregate) =>
  Object.fromEntries(
    groups.map(({ labels, series }) => [
      Object.values(labels).join(),
      series.map(({ points }) => points.map(({ value }) => value)),
    ]),
  );

/** Stores a metric of new agents at these sites. Each value is a sample, one per second. */
async function newNetwork(metric: string, agents: { site?: string; values: number[] }[]) {
  const team = uniqueName();
  const created = await Promise.all(
    agents.map(async ({ site, values }) => {
      const agent = await newAgent({ access_point_type: "WiFi" }, { team, ...(site !== undefined && { site }) });
      const samples = values.map((value, i) => ({ ts: startMs + i * 1000, payload: { [metric]: value } }));
      expect((await post({ samples }, agent.token)).status).toBe(200);
      return agent;
    }),
  );
  // The labels may be a few seconds old.
  const agentsOf = async () => {
    const { groups } = await aggregate(await adminToken(), `selector=team=${team}&metrics=${metric}${PERIOD}`);
    return groups[0]?.agents;
  };
  await expect.poll(agentsOf, { timeout: 10_000, interval: 200 }).toBe(agents.length);
  return { team, agents: created };
}

describe("aggregates", () => {
  it("are statistics of the agents' means in each bucket, for each group", async () => {
    const metric = uniqueName();
    const { team } = await newNetwork(metric, [
      { site: "a", values: [1, 3] },
      { site: "a", values: [10] },
      { site: "b", values: [-4] },
      { values: [100] },
    ]);
    const { token } = await signedUp();
    const expected: Record<Statistic, [number, number, number]> = {
      avg: [6, -4, 100],
      sum: [12, -4, 100],
      min: [2, -4, 100],
      max: [10, -4, 100],
      p50: [10, -4, 100],
      p95: [10, -4, 100],
      count: [2, 1, 1],
    };
    for (const statistic of STATISTICS) {
      const result = await aggregate(
        token,
        `selector=team=${team}&metrics=${metric},none&by=site,technology&statistic=${statistic}${PERIOD}`,
      );
      const series = (value: number) => [
        { metric, points: [{ ts: new Date(startMs).toISOString(), value }] },
        { metric: "none", points: [] },
      ];
      const [a, b, none] = expected[statistic];
      expect(result).toEqual({
        statistic,
        bucket_ms: MINUTE_MS,
        start_time: new Date(startMs).toISOString(),
        end_time: new Date(startMs + 10 * MINUTE_MS).toISOString(),
        groups: [
          { labels: { site: "a", technology: "WiFi" }, agents: 2, series: series(a) },
          { labels: { site: "b", technology: "WiFi" }, agents: 1, series: series(b) },
          { labels: { site: null, technology: "WiFi" }, agents: 1, series: series(none) },
        ],
      });
    }
  });

  it("use the mean over the whole bucket, for buckets of several minutes", async () => {
    const metric = uniqueName();
    const { agents } = await newNetwork(metric, [{ values: Array.from({ length: 90 }, (_, i) => i) }]);
    const { token } = await signedUp();
    const result = await aggregate(
      token,
      `metrics=${metric}&start_time=${startMs}&end_time=${startMs + 900 * MINUTE_MS}`,
    );
    expect(result.bucket_ms).toBe(2 * MINUTE_MS);
    expect(valuesOf(result)).toEqual({ "": [[44.5]] });
    expect(agents).toHaveLength(1);
  });

  it("contain recent samples at once", async () => {
    const metric = uniqueName();
    const { token: agentToken } = await newAgent();
    await post({ [metric]: 7 }, agentToken);
    const result = await aggregate(await adminToken(), `metrics=${metric}`);
    expect(valuesOf(result)).toEqual({ "": [[7]] });
    expect(Date.parse(result.end_time) - Date.parse(result.start_time)).toBeGreaterThanOrEqual(HOUR_MS);
  });

  it("survive infinite sums", async () => {
    const metric = uniqueName();
    await newNetwork(metric, [{ values: [1e308, 1e308, 1e308] }, { values: [-1e308, -1e308] }, { values: [1e308] }]);
    for (const statistic of STATISTICS) {
      const [values] =
        valuesOf(await aggregate(await adminToken(), `metrics=${metric}&statistic=${statistic}${PERIOD}`))[""] ?? [];
      expect(values, statistic).toEqual([expect.any(Number)]);
    }
  });

  it("are limited to the agents that the caller sees, whatever other agents send", async () => {
    const metric = uniqueName();
    const { team, agents } = await newNetwork(metric, [
      { site: "in/1", values: [2] },
      { site: "out", values: [1000] },
    ]);
    const { token } = await signedUp([{ role: "viewer", selector: `team=${team},site=in/*` }]);
    const { token: app } = await newApp({ ap_ids: [agents[0]?.apId] });
    const { token: stranger } = await signedUp([]);
    const queries = ["", "&by=site", "&selector=site", `&selector=team=${team}&by=team,site`, "&selector=site=out"];
    const read = async (caller: string) =>
      await Promise.all(
        queries.map(async (query) => await (await get(`aggregate?metrics=${metric}${query}${PERIOD}`, caller)).text()),
      );
    const before = await read(token);
    expect(before.map((text) => valuesOf(JSON.parse(text)))).toEqual([
      { "": [[2]] },
      { "in/1": [[2]] },
      { "": [[2]] },
      { [`${team},in/1`]: [[2]] },
      { "": [[]] },
    ]);
    await post({ samples: [{ ts: startMs + 5, payload: { [metric]: 5_000 } }] }, agents[1]?.token ?? "");
    expect(await read(token)).toEqual(before);
    expect(await read(app)).toEqual(before);
    for (const text of await read(stranger)) expect(Object.values(valuesOf(JSON.parse(text))).flat(2)).toEqual([]);
    const all = await aggregate(await adminToken(), `metrics=${metric}&statistic=sum${PERIOD}`);
    expect(valuesOf(all)).toEqual({ "": [[3002]] });
  });

  it("count deleted agents for a caller that sees all, in the group without labels", async () => {
    const metric = uniqueName();
    const { agents } = await newNetwork(metric, [{ site: "a", values: [1] }]);
    const admin = await adminToken();
    expect((await send("DELETE", `/api/v1/agents/${agents[0]?.apId}`, undefined, admin)).status).toBe(200);
    const occupied = async () => {
      const { groups } = await aggregate(admin, `metrics=${metric}&by=site${PERIOD}`);
      return groups.filter(({ series }) => series[0]?.points.length).map(({ labels }) => labels);
    };
    await expect.poll(occupied, { timeout: 10_000, interval: 200 }).toEqual([{ site: null }]);
  });

  it.each([
    ["metrics=", "metrics"],
    [`metrics=${Array.from({ length: 11 }, (_, i) => `m${i}`)}`, "metrics"],
    ["metrics=a&by=a,b,c,d", "by"],
    ["metrics=a&by=b*", "by"],
    ["metrics=a&statistic=median", "statistic"],
    ["metrics=a&window=367d", "window"],
    ["metrics=a&window=1h&start_time=1", "window"],
    ["metrics=a&end_time=1", "end_time"],
    ["metrics=a&start_time=2&end_time=1", "end_time"],
    ["metrics=a&start_time=2020-01-01&end_time=2021-01-03", "end_time"],
    ["metrics=a&selector=a=", "selector"],
    ["metrics=a&selector=@none", "selector"],
  ])("reject %s with 422", async (query, field) => {
    const response = await get(`aggregate?${query}`, await adminToken());
    expect(response.status).toBe(422);
    const { detail } = (await response.json()) as { detail: { loc: string[] }[] };
    expect(detail.map(({ loc }) => loc[1])).toEqual(expect.arrayContaining([field]));
  });

  it("require the permissions to list agents and to read telemetry", async () => {
    const statusFor = async (token: string) => (await get("aggregate?metrics=a", token)).status;
    for (const permissions of [{ agents: false }, { data: false }])
      expect(await statusFor((await newApp(permissions)).token)).toBe(403);
    for (const scope of ["agents:read", "telemetry:read", "agents:read telemetry:read"]) {
      const token = await tokenOf(settings.ADMIN_USERNAME ?? "", settings.ADMIN_PASSWORD ?? "", "user", scope);
      expect(await statusFor(token), scope).toBe(scope.includes(" ") ? 200 : 403);
    }
  });
});

const ADMIN = { kind: "admin", scopes: new Set(["agents:read", "telemetry:read"]) } as unknown as Actor;

/** Returns aggregates of some agents, with data in the store and optionally in the memory of shards. */
function aggregatesOf(agents: readonly ScopedAgent[], recent: RecentSums[] | undefined, nowMs: number) {
  const aggregates = createAggregates({
    agents: async () => agents,
    store: testStore(),
    shards: { recentMinutes: async () => recent },
    now: () => nowMs,
  });
  return async (metric: string, statistic: Statistic, by: string[], window: number) =>
    await aggregates.read(ADMIN, { metrics: [metric], statistic, by, window }, [
      // Only these agents: other tests delete theirs.
      { key: "test", negated: false },
    ]);
}

const anAgent = (i: number, site: string | undefined): ScopedAgent => ({
  apId: `aggr-${i}`,
  ownerId: null,
  labels: { test: "1", ...(site !== undefined && { site }) },
});
const samplesOf = (
  metric: string,
  values: readonly (readonly [agent: number, atS: number, value: number])[],
  endMs: number,
) =>
  values.map(
    ([agent, atS, value], i): AgentSample => ({
      apId: `aggr-${agent}`,
      // Times differ, because a value at the same time would replace an earlier one.
      tsMs: endMs - atS * 1000 - (i % 1000),
      metrics: { [metric]: value },
      texts: {},
    }),
  );

const Network = fc.record({
  sites: fc.array(fc.option(fc.constantFrom("a", "b", "c"), { nil: undefined }), { minLength: 1, maxLength: 8 }),
  values: fc.array(
    fc.tuple(fc.nat({ max: 7 }), fc.integer({ min: 1, max: 1_500 }), fc.double({ min: -1e6, max: 1e6, noNaN: true })),
    { minLength: 1, maxLength: 60 },
  ),
  window: fc.constantFrom(5 * MINUTE_MS, 26 * MINUTE_MS, 13 * HOUR_MS, 300 * 24 * HOUR_MS),
});

/** Returns the points of all groups by time. */
const pointsByTime = ({ groups }: Aggregate) =>
  Map.groupBy(
    groups.flatMap(({ series }) => series.flatMap(({ points }) => points)),
    ({ ts }) => ts,
  );

describe("groups of aggregates", () => {
  const COMBINE = {
    sum: (values: number[]) => values.reduce((sum, value) => sum + value, 0),
    count: (values: number[]) => values.reduce((sum, value) => sum + value, 0),
    min: (values: number[]) => Math.min(...values),
    max: (values: number[]) => Math.max(...values),
  };

  it("have sums, counts, minima and maxima that combine to those of all agents", { timeout: 120_000 }, async () => {
    const endMs = startMs;
    await fc.assert(
      fc.asyncProperty(Network, async ({ sites, values, window }) => {
        const metric = uniqueName();
        await testStore().insert(samplesOf(metric, values, endMs), metric);
        const read = aggregatesOf(
          sites.map((site, i) => anAgent(i, site)),
          undefined,
          endMs,
        );
        for (const [statistic, combine] of Object.entries(COMBINE) as [
          keyof typeof COMBINE,
          (v: number[]) => number,
        ][]) {
          const [grouped, whole] = [
            pointsByTime(await read(metric, statistic, ["site"], window)),
            pointsByTime(await read(metric, statistic, [], window)),
          ];
          expect([...grouped.keys()].toSorted()).toEqual([...whole.keys()].toSorted());
          for (const [ts, points] of whole)
            expect(combine((grouped.get(ts) ?? []).map(({ value }) => value))).toBeCloseTo(points[0]?.value ?? 0, 3);
        }
      }),
      { numRuns: 8 },
    );
  });
});

describe("the number of groups", () => {
  it("is at most 200", async () => {
    const agents = (sites: number) => Array.from({ length: sites }, (_, i) => anAgent(i, `site-${i}`));
    const groupsOf = async (sites: number) =>
      (await aggregatesOf(agents(sites), undefined, startMs)(uniqueName(), "sum", ["site"], HOUR_MS)).groups.length;
    expect(await groupsOf(200)).toBe(200);
    await expect(groupsOf(201)).rejects.toMatchObject({ place: "query", items: [{ loc: ["by"] }] });
  });
});

describe("recent minutes in the shards", () => {
  it("give the same aggregates as the rollup, from any minute on and from any number of shards", async () => {
    const endMs = startMs;
    await fc.assert(
      fc.asyncProperty(
        Network,
        fc.integer({ min: 1, max: 3 }),
        fc.constantFrom(...STATISTICS),
        async ({ sites, values, window }, shardCount, statistic) => {
          const metric = uniqueName();
          const samples = samplesOf(metric, values, endMs);
          await testStore().insert(samples, metric);
          const clock = { ms: endMs - 2 * HOUR_MS };
          const shards = Array.from(
            { length: shardCount },
            (_, i) => new RecentMinutes({ minutes: 3 + i, maxAheadMs: 0, maxBytes: 1e6, now: () => clock.ms }),
          );
          clock.ms = endMs - 1;
          for (const sample of samples) shards[sample.apId.charCodeAt(5) % shardCount]?.add([sample]);
          const agents = sites.map((site, i) => anAgent(i, site));
          const recent = shards.map((shard) => shard.read([metric], 0));
          expect(recent.every(({ completeFromMs }) => completeFromMs < endMs)).toBe(true);
          const [fromStore, fromBoth] = [
            await aggregatesOf(agents, undefined, endMs)(metric, statistic, ["site"], window),
            await aggregatesOf(agents, recent, endMs)(metric, statistic, ["site"], window),
          ];
          const rounded = (value: unknown) =>
            JSON.parse(JSON.stringify(value), (_, member) =>
              typeof member === "number" ? Number(member.toPrecision(9)) : member,
            );
          expect(rounded(fromBoth)).toEqual(rounded(fromStore));
        },
      ),
      { numRuns: 10 },
    );
  });
});
