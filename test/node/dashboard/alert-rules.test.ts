import { describe, expect, it } from "vitest";
import {
  firedPeriods,
  firingCounts,
  subjects,
  summaryText,
} from "../../../src/dashboard/features/alerts/rules/backtest-lines.ts";
import {
  fromConditionDraft,
  newCondition,
  toConditionDraft,
  withKind,
} from "../../../src/dashboard/features/alerts/rules/condition-draft.ts";
import { conditionText, levelsOf, metricsOf } from "../../../src/dashboard/features/alerts/rules/condition-text.ts";
import { newRule, ruleIn, specIn, toRuleDraft } from "../../../src/dashboard/features/alerts/rules/rule-draft.ts";
import { durationOf } from "../../../src/dashboard/lib/duration.ts";
import type { Backtest } from "../../../src/schemas/alerts/backtest.ts";
import { type Condition, RuleSpec } from "../../../src/schemas/alerts/rule.ts";

const NESTED: Condition = {
  any: [
    { metric: "load", op: ">", value: 0.9 },
    { all: [{ metric: "users", op: "<", baseline: { days: 7, factor: 0.5 } }, { no_report_s: 90 }] },
    { rate_of: "throughput_mbps", over_s: 60, op: "<=", value: -3 },
  ],
};

describe("a condition in the editor", () => {
  it("comes out as it went in, at every depth", () => {
    expect(fromConditionDraft(toConditionDraft(NESTED))).toEqual(NESTED);
  });

  it("is not complete while a number or a metric is missing", () => {
    expect(fromConditionDraft(newCondition({ value: "" }))).toBeUndefined();
    expect(fromConditionDraft(newCondition({ metric: " " }))).toBeUndefined();
    expect(fromConditionDraft(newCondition({ value: "1e" }))).toBeUndefined();
    const parts = [newCondition(), newCondition({ value: "-" })];
    expect(fromConditionDraft(newCondition({ kind: "any", parts }))).toBeUndefined();
    expect(fromConditionDraft(newCondition({ kind: "all", parts: [] }))).toBeUndefined();
  });

  it("keeps what was typed when its kind changes, also as the first of several", () => {
    const typed = newCondition({ metric: "quality", op: "<", value: "0.3" });
    expect(fromConditionDraft(withKind(withKind(typed, "absence"), "threshold"))).toEqual({
      ...{ metric: "quality", op: "<", value: 0.3 },
    });
    expect(fromConditionDraft(withKind(typed, "any"))).toEqual({
      any: [{ metric: "quality", op: "<", value: 0.3 }, { no_report_s: 60 }],
    });
  });

  it("is described in words, with its metrics and thresholds", () => {
    expect(conditionText(NESTED)).toBe(
      "load above 0.9 or (users below 0.5 × its mean at this hour of the last 7 days and no report for 1 min 30 s)" +
        " or change of throughput_mbps per second, over 1 min, at most -3",
    );
    expect(metricsOf(NESTED)).toEqual(["load", "users", "throughput_mbps"]);
    expect(levelsOf(NESTED, "load")).toEqual([0.9]);
    expect(levelsOf(NESTED, "users")).toEqual([]);
  });
});

describe("a rule in the editor", () => {
  it("comes out as it went in", () => {
    const spec = RuleSpec.parse({
      ...{ selector: "site=uk/*", condition: NESTED, for_s: 300, severity: "critical", text: "{{ap_id}}" },
      clear: { condition: { metric: "load", op: "<", value: 0.8 }, for_s: 45 },
      group: { by: "site", percent: 50 },
      labels: { team: "night" },
    });
    expect(specIn(toRuleDraft({ name: "Load", enabled: false, spec }))).toEqual(spec);
    expect(ruleIn(toRuleDraft({ name: " Load ", enabled: false, spec }))).toMatchObject({
      name: "Load",
      enabled: false,
    });
  });

  it("is complete from the start, and not with an invalid selector, duration or share", () => {
    expect(RuleSpec.safeParse(specIn(newRule())).success).toBe(true);
    expect(specIn({ ...newRule(), selector: "site=" })).toBeUndefined();
    expect(specIn({ ...newRule(), holdsFor: { amount: "", unit: "s" } })).toBeUndefined();
    expect(specIn({ ...newRule(), group: { by: "site", percent: "0" } })).toBeUndefined();
  });

  it("shows durations in the largest unit that fits", () => {
    expect([0, 45, 90, 300, 7_200, 86_400].map(durationOf)).toEqual([
      { amount: "0", unit: "s" },
      { amount: "45", unit: "s" },
      { amount: "90", unit: "s" },
      { amount: "5", unit: "min" },
      { amount: "2", unit: "h" },
      { amount: "1", unit: "d" },
    ]);
  });
});

describe("a backtest on a chart", () => {
  const at = (second: number) => new Date(second * 1_000).toISOString();
  const past = (ap_id: string, from: number, to: number | null): Backtest["alerts"][number] => ({
    ...{ ap_id, group: null, fired_at: at(from), resolved_at: to === null ? null : at(to) },
    ...{ duration_s: (to ?? 100) - from, value: 1, text: ap_id },
  });
  const result: Backtest = {
    ...{ from: at(0), to: at(100), resolution: "samples", agents: 3, total: 3, truncated: false },
    alerts: [past("a", 10, 20), past("b", 15, 30), past("b", 40, null)],
    flaps: { total: 1, most: [] },
  };

  it("shades the time of each alert, up to the end for one that still fires", () => {
    expect(firedPeriods(result, "b")).toEqual([
      { fromMs: 15_000, untilMs: 30_000 },
      { fromMs: 40_000, untilMs: 100_000 },
    ]);
  });

  it("counts the alerts at the same time, with steps", () => {
    const { times, values } = firingCounts(firedPeriods(result), 0, 100_000);
    const valueAt = (ms: number) => values[times.findLastIndex((timeMs) => timeMs <= ms)];
    expect([0, 12_000, 17_000, 25_000, 35_000, 50_000, 100_000].map(valueAt)).toEqual([0, 1, 2, 1, 0, 1, 1]);
    expect(times).toEqual(times.toSorted((one, other) => one - other));
    expect(new Set(times).size).toBe(times.length);
    expect(firingCounts([], 0, 10)).toEqual({ times: [0, 10], values: [0, 0] });
  });

  it("names the access points with the most alerts first, and sums up", () => {
    expect(subjects(result)).toEqual([
      { name: "b", count: 2 },
      { name: "a", count: 1 },
    ]);
    expect(summaryText(result)).toBe("3 alerts on 3 access points; 1 flap (fired again within 10 minutes).");
    expect(summaryText({ ...result, total: 0 })).toBe("No alerts on 3 access points.");
    expect(summaryText({ ...result, agents: 0, total: 0 })).toBe("The rule watches no access points.");
  });
});
