import { env } from "cloudflare:test";
import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { Evaluation, type PastRange } from "../../../src/alerting/past-alerts.ts";
import { Replay, type ReplayedAlert } from "../../../src/alerting/replay.ts";
import { parseEnv } from "../../../src/env.ts";
import { baselineOf, type HourSum, hourOf } from "../../../src/rules/baseline.ts";
import type { CompiledRule } from "../../../src/rules/evaluator.ts";
import { createClickHouse } from "../../../src/storage/clickhouse.ts";
import { createRuleReader } from "../../../src/telemetry/store/rule-reader.ts";
import type { AgentSample } from "../../../src/telemetry/store/telemetry-store.ts";
import { anyFixedRule, anyRule, ruleOf } from "../../support/rules.ts";
import { testStore, uniqueName } from "../support.ts";

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;
const reader = createRuleReader(createClickHouse(parseEnv(env)));
const fromMs = Math.floor(Date.now() / HOUR_MS) * HOUR_MS - 5 * HOUR_MS;
const toMs = fromMs + 3 * HOUR_MS - 30_500;

type Report = Pick<AgentSample, "tsMs" | "metrics" | "texts">;

const value = fc.integer({ min: 0, max: 3 });
/** Not empty: the store has no trace of a report without any value. */
const fields = fc.oneof(
  {
    weight: 5,
    arbitrary: fc.record({
      metrics: fc.oneof(fc.record({ a: value, b: value }), fc.record({ a: value }), fc.record({ b: value })),
    }),
  },
  { weight: 1, arbitrary: fc.record({ metrics: fc.record({ other: value }) }) },
  { weight: 1, arbitrary: fc.constant({ metrics: {}, texts: { state: "idle" } }) },
);
const pauseMs = fc.oneof(
  { weight: 9, arbitrary: fc.constantFrom(1, 1_000, 5_000, 10_000, 13_000, 30_000) },
  { weight: 1, arbitrary: fc.constantFrom(100_000, 2_500_000) },
);
/** Reports in the period, some on earlier days, and some after the period. */
const reports: fc.Arbitrary<Report[]> = fc
  .array(fc.record({ pauseMs, fields }), { minLength: 5, maxLength: 60 })
  .chain((all) =>
    fc.record({
      all: fc.constant(all),
      earlier: fc.array(fc.record({ hour: fc.nat(150), fields }), { maxLength: 20 }),
    }),
  )
  .map(({ all, earlier }) => {
    let tsMs = fromMs;
    const later = all.map(({ pauseMs, fields }) => {
      tsMs += pauseMs;
      return { tsMs, texts: {}, ...fields };
    });
    const before = new Map(earlier.map(({ hour, fields }) => [fromMs - (hour + 1) * HOUR_MS + 1_234, fields]));
    return [...[...before].map(([tsMs, fields]) => ({ tsMs, texts: {}, ...fields })), ...later];
  });

/** Evaluates reports without the store. */
function evaluate(rule: CompiledRule, all: readonly Report[], inPeriod: readonly Report[]): ReplayedAlert[] {
  const hours = new Map<string, Map<number, HourSum>>();
  for (const { tsMs, metrics } of all) {
    for (const [metric, added] of Object.entries(metrics)) {
      const sums = hours.get(metric) ?? new Map<number, HourSum>();
      const { n, total } = sums.get(hourOf(tsMs)) ?? { n: 0, total: 0 };
      hours.set(metric, sums.set(hourOf(tsMs), { n: n + 1, total: total + added }));
    }
  }
  const baseline = (metric: string, days: number, atMs: number) =>
    baselineOf(hours.get(metric) ?? new Map(), days, atMs);
  const replay = new Replay(rule);
  for (const { tsMs, metrics } of inPeriod) replay.observe({ atMs: tsMs, metrics, baseline });
  replay.observe({ atMs: toMs, baseline });
  return replay.alerts;
}

const samplesOf = (all: readonly Report[]): Report[] => all.filter(({ tsMs }) => tsMs >= fromMs && tsMs <= toMs);

/** Returns the means of the minutes that begin in the period, as reports. The rollup has no texts. */
function minutesOf(all: readonly Report[]): Report[] {
  const byMinute = Map.groupBy(all, ({ tsMs }) => Math.floor(tsMs / MINUTE_MS) * MINUTE_MS);
  const minutes = [...byMinute].map(([tsMs, ofMinute]): Report => {
    const names = new Set(ofMinute.flatMap(({ metrics }) => Object.keys(metrics)));
    const mean = (name: string) => {
      const values = ofMinute.flatMap(({ metrics }) => metrics[name] ?? []);
      return values.reduce((sum, one) => sum + one, 0) / values.length;
    };
    return { tsMs, texts: {}, metrics: Object.fromEntries([...names].map((name) => [name, mean(name)])) };
  });
  return samplesOf(minutes.filter(({ metrics }) => Object.keys(metrics).length > 0)).toSorted(
    (a, b) => a.tsMs - b.tsMs,
  );
}

const timesAndValues = (alerts: readonly ReplayedAlert[]) =>
  alerts.map(({ firedMs, resolvedMs, value }) => ({ firedMs, resolvedMs, value }));

async function backtest(rule: CompiledRule, range: PastRange, isPlain: boolean) {
  const evaluation = new Evaluation(reader, rule, range, { isPlain });
  const { alerts, isTruncated } = await evaluation.run();
  expect(isTruncated).toBe(false);
  await evaluation.addValues(alerts.flatMap((ofAgent, agent) => ofAgent.map((alert) => ({ agent, alert }))));
  return alerts.map(timesAndValues);
}

describe("a backtest", () => {
  it("gives the transitions of a direct evaluation, for any rule, samples and resolution", {
    timeout: 300_000,
  }, async () => {
    const networks = fc.record({
      network: fc.array(reports, { minLength: 3, maxLength: 6 }),
      rules: fc.tuple(anyRule, anyFixedRule, anyFixedRule),
    });
    await fc.assert(
      fc.asyncProperty(networks, async ({ network, rules }) => {
        const apIds = network.map(uniqueName);
        const stored = network.flatMap((all, i) => all.map((report) => ({ ...report, apId: apIds[i] ?? "" })));
        await testStore().insert(stored, uniqueName());
        for (const rule of rules) {
          for (const resolution of ["samples", "minutes"] as const) {
            const inPeriod = resolution === "samples" ? samplesOf : minutesOf;
            const expected = network.map((all) => timesAndValues(evaluate(rule, all, inPeriod(all))));
            const range = { apIds, fromMs, toMs, resolution };
            expect(await backtest(rule, range, true)).toEqual(expected);
            expect(await backtest(rule, range, false)).toEqual(expected);
          }
        }
      }),
      { numRuns: 4, endOnFailure: true },
    );
  });

  it("compares with the mean of earlier days, also for an agent that reports nothing in the period", async () => {
    const rule = ruleOf({ condition: { metric: "a", op: ">", baseline: { days: 7, factor: 2 } } });
    const apIds = [uniqueName(), uniqueName()];
    const report = (apId: string, tsMs: number, a: number) => ({ apId, tsMs, texts: {}, metrics: { a } });
    const earlier = apIds.map((apId) => report(apId, fromMs - 24 * HOUR_MS, 1));
    await testStore().insert([...earlier, report(apIds[1] ?? "", fromMs, 3)], uniqueName());
    const range = { apIds, fromMs, toMs, resolution: "minutes" } as const;
    expect(await backtest(rule, range, false)).toEqual([[], [{ firedMs: fromMs, resolvedMs: null, value: 3 }]]);
  });

  it("ends with a clear error if it takes too long", async () => {
    let nowMs = 0;
    const now = () => (nowMs += 20_000);
    const rule = ruleOf({ condition: { metric: "a", op: ">", value: 1 } });
    const range = { apIds: [uniqueName()], fromMs, toMs, resolution: "samples" } as const;
    await expect(new Evaluation(reader, rule, range, { now }).run()).rejects.toMatchObject({
      code: "too_large",
      message: expect.stringContaining("shorter period"),
    });
  });
});
