import type { EnabledRule } from "../../../alerts/rule-store.ts";
import type { AlertingRule } from "../../../alerts/shard-events.ts";
import { type Labels, matches } from "../../../lib/selectors.ts";
import { toMs } from "../../../rules/conditions.ts";
import { type CompiledRule, compileRule } from "../../../rules/evaluator.ts";
import type { Condition } from "../../../schemas/alerts/rule.ts";

/** A mean of earlier days that a rule compares with. */
export interface BaselineNeed {
  metric: string;
  days: number;
}

/** A comparison of a metric with a fixed value. */
export type Threshold = Extract<Condition, { value: number; metric: string }>;

/** The rate of a metric over a time. */
export interface RateNeed {
  metric: string;
  overMs: number;
}

/** A comparison of a rate with a fixed value. */
export type RateThreshold = RateNeed & Pick<Threshold, "op" | "value">;

/** A rule that the shard evaluates, prepared once for all agents. */
export interface WatchedRule {
  source: EnabledRule;
  compiled: CompiledRule;
  /** How alerts of the rule describe it. */
  described: AlertingRule;
  /** Two versions of a rule with the same key have the same states. */
  stateKey: string;
  /** The rule can fire only if one of these or of `rateThresholds` holds, or without a report. Undefined if it depends on more than that. */
  thresholds: readonly Threshold[] | undefined;
  rateThresholds: readonly RateThreshold[];
  /** In the order of a state. */
  rates: readonly RateNeed[];
  /** The shortest time without a report that matters. Infinity if none does. */
  absenceMs: number;
  baselines: readonly BaselineNeed[];
}

/** Prepares rules. They are in the order of their ids, which is that of their events. */
export const watchRules = (rules: readonly EnabledRule[]): Map<string, WatchedRule> =>
  new Map(rules.toSorted((a, b) => (a.id < b.id ? -1 : 1)).map((rule) => [rule.id, watchRule(rule)]));

function watchRule(source: EnabledRule): WatchedRule {
  const { id, name, spec } = source;
  const compiled = compileRule(spec);
  const { rates, means, absencesMs } = compiled.needs;
  const nameOf = (index: number): string => compiled.metrics[index] ?? "";
  const alternatives = means.length > 0 ? undefined : alternativesOf(spec.condition);
  return {
    source,
    compiled,
    described: { id, name, severity: spec.severity, labels: spec.labels },
    stateKey: JSON.stringify([spec.condition, spec.for_s, spec.clear, spec.group]),
    thresholds: alternatives?.filter((one) => "metric" in one),
    rateThresholds: (alternatives ?? []).flatMap((one) =>
      "metric" in one ? [] : [{ metric: one.rate_of, overMs: toMs(one.over_s), op: one.op, value: one.value }],
    ),
    rates: rates.map(({ metric, overMs }) => ({ metric: nameOf(metric), overMs })),
    absenceMs: Math.min(...absencesMs),
    baselines: means.map(({ metric, days }) => ({ metric: nameOf(metric), days })),
  };
}

/** Returns whether the rule can fire without a report. */
export const hasAbsence = ({ absenceMs }: WatchedRule): boolean => absenceMs < Number.POSITIVE_INFINITY;

/** Returns the value of the label that names the agent's group. Undefined if the rule is not about groups. */
export const groupOf = ({ source }: WatchedRule, labels: Labels): string | undefined =>
  source.spec.group && labels[source.spec.group.by];

/** Returns whether the rule watches an agent with these labels. An agent without the label of the groups is in none of them. */
export const appliesTo = (rule: WatchedRule, labels: Labels): boolean =>
  matches(rule.source.selector, labels) &&
  (rule.source.spec.group === undefined || groupOf(rule, labels) !== undefined);

/** Returns whether an agent with new labels is in another group than before. */
export const hasMoved = (rule: WatchedRule, before: Labels = {}, after: Labels): boolean =>
  groupOf(rule, before) !== groupOf(rule, after);

type Comparison = Threshold | Extract<Condition, { rate_of: string }>;

/** Returns the comparisons of which one must hold. Undefined if the condition is not one of several comparisons and absences. */
function alternativesOf(condition: Condition): Comparison[] | undefined {
  if ("any" in condition) {
    const inner = condition.any.map(alternativesOf);
    return inner.every((list) => list !== undefined) ? inner.flat() : undefined;
  }
  if ("no_report_s" in condition) return [];
  return "value" in condition ? [condition] : undefined;
}
