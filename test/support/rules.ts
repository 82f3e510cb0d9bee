import * as fc from "fast-check";
import {
  type BaselineLookup,
  type CompiledRule,
  compileRule,
  nextDueMs,
  type RuleState,
  step,
  type Transition,
} from "../../src/rules/evaluator.ts";
import type { Condition } from "../../src/schemas/alerts/rule.ts";
import { RuleSpec } from "../../src/schemas/alerts/rule.ts";

/** Runs rules on reports, and generates both. */

export interface Report {
  atS: number;
  metrics: Record<string, number>;
}

export const ruleOf = (spec: object): CompiledRule => compileRule(RuleSpec.parse(spec));

/** Returns reports of one metric, one every `everyS` seconds. */
export const reportsOf = (metric: string, values: readonly number[], everyS = 10): Report[] =>
  values.map((value, i) => ({ atS: i * everyS, metrics: { [metric]: value } }));

/** A mean that differs between hours, and that some hours do not have. */
export const baselineAt = (_metric: string, _days: number, atMs: number): number | undefined => {
  const hour = Math.floor(atMs / 3_600_000) % 24;
  return hour % 5 === 4 ? undefined : hour % 3;
};

const show = ({ type, atMs }: Transition): string => `${type} ${atMs / 1000}`;

/** Evaluates reports in the order of the list, and then ticks up to a time. Returns transitions such as `fired 60`. */
export const run = (rule: CompiledRule, reports: readonly Report[], untilS?: number): string[] =>
  transitionsOf(rule, reports, untilS).map(show);

export function transitionsOf(
  rule: CompiledRule,
  reports: readonly Report[],
  untilS?: number,
  baseline: BaselineLookup = baselineAt,
): Transition[] {
  let state: RuleState | undefined;
  const all: Transition[] = [];
  const observations = reports.map(({ atS, metrics }) => ({ atMs: atS * 1000, metrics }));
  for (const observation of [...observations, ...(untilS === undefined ? [] : [{ atMs: untilS * 1000 }])]) {
    const result = step(rule, state, { baseline, ...observation });
    state = result.state;
    all.push(...result.transitions);
  }
  return all;
}

/** Like `transitionsOf`, with a tick at every due time, as the timer of a shard gives them. */
export function transitionsWithTicks(rule: CompiledRule, reports: readonly Report[], untilS: number): Transition[] {
  let state: RuleState | undefined;
  const all: Transition[] = [];
  const tickUntil = (isDue: (dueMs: number) => boolean) => {
    for (let dueMs = state ? nextDueMs(rule, state) : Infinity; isDue(dueMs); ) {
      const result = step(rule, state, { atMs: dueMs, baseline: baselineAt });
      state = result.state;
      all.push(...result.transitions);
      dueMs = result.nextDueMs;
    }
  };
  for (const { atS, metrics } of reports) {
    tickUntil((dueMs) => dueMs < atS * 1000);
    const result = step(rule, state, { atMs: atS * 1000, metrics, baseline: baselineAt });
    state = result.state;
    all.push(...result.transitions);
  }
  tickUntil((dueMs) => dueMs <= untilS * 1000);
  return all;
}

const op = fc.constantFrom(">", ">=", "<", "<=");
const metric = fc.constantFrom("a", "b");
const limit = fc.integer({ min: 0, max: 3 });
const fixed = [fc.record({ metric, op, value: limit }), fc.record({ no_report_s: fc.integer({ min: 1, max: 90 }) })];
const relative = [
  fc.record({ metric, op, baseline: fc.record({ days: fc.constant(7), factor: fc.constantFrom(0.5, 1, 2) }) }),
  fc.record({ rate_of: metric, over_s: fc.integer({ min: 1, max: 60 }), op, value: fc.constantFrom(-0.1, 0, 0.1) }),
];
const conditionOf = (simple: fc.Arbitrary<Condition>): fc.Arbitrary<Condition> => {
  const inner = fc.array(simple, { minLength: 1, maxLength: 3 });
  return fc.oneof(
    simple,
    inner.map((any) => ({ any })),
    inner.map((all) => ({ all })),
    fc.tuple(inner, inner).map(([any, all]) => ({ all: [{ any }, ...all] })),
  );
};
const durationS = fc.constantFrom(0, 0, 10, 15, 30, 60);

const ruleWith = (condition: fc.Arbitrary<Condition>): fc.Arbitrary<CompiledRule> =>
  fc
    .record({
      condition,
      for_s: durationS,
      clear: fc.record({ condition: fc.option(condition, { nil: undefined }), for_s: durationS }),
    })
    .map(ruleOf);

/** Rules whose conditions compare metrics with fixed values, or look for absence. */
export const anyFixedRule = ruleWith(conditionOf(fc.oneof(...fixed)));
export const anyRule = ruleWith(conditionOf(fc.oneof(...fixed, ...relative)));

const metrics = fc.record({ a: limit, b: limit }, { requiredKeys: [] });
/** Reports in ascending order, at intervals of about 10 s, some with long pauses before them. */
export const anyReports: fc.Arbitrary<Report[]> = fc
  .array(
    fc.record({
      pauseS: fc.oneof(
        { weight: 9, arbitrary: fc.constantFrom(1, 5, 10, 10, 13) },
        { weight: 1, arbitrary: fc.constantFrom(100, 3_600) },
      ),
      metrics,
    }),
    {
      maxLength: 60,
    },
  )
  .map((reports) => {
    let atS = 1_000;
    return reports.map(({ pauseS, metrics }) => {
      atS += pauseS;
      return { atS, metrics };
    });
  });

/** A time after all reports at which no further transition is due. */
export const END_S = 1_000_000;
