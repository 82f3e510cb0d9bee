import type { Condition, RuleSpec } from "../schemas/alerts/rule.ts";
import { toMs } from "./conditions.ts";
import { type CompiledRule, compileRule } from "./evaluator.ts";

/**
 * The simple conditions of a rule, and the rule in terms of their results. The store can compute when the result of each changes, and the
 * evaluator does the rest: all values in between change nothing.
 */

/** A comparison of a metric. */
export type Leaf = Extract<Condition, { metric: string }>;

export interface LeafRule {
  leaves: readonly Leaf[];
  /** The rule with a metric for each leaf: `leafMetric`. Report `leafValue`. */
  rule: CompiledRule;
  /** The shortest time without a report that matters. Undefined: none does. */
  absenceMs: number | undefined;
}

export const leafMetric = (index: number): string => String(index);

/** True leaves have values that no absence has, so that the value of a transition names the leaf that explains it. */
const TRUE = 1e15;
export const leafValue = (index: number, holds: boolean): number => (holds ? TRUE + index : 0);

/** Returns the leaf that explains a transition. Undefined: the value is that of an absence. */
export const explainedBy = ({ leaves }: LeafRule, value: number | undefined): Leaf | undefined =>
  value === undefined ? undefined : leaves[value - TRUE];

/** Returns a rule in terms of its leaves. Undefined if a condition depends on earlier values. */
export function toLeafRule(spec: RuleSpec): LeafRule | undefined {
  const leaves: Leaf[] = [];
  const absencesMs: number[] = [];
  let hasRate = false;
  const convert = (condition: Condition): Condition => {
    if ("any" in condition) return { any: condition.any.map(convert) };
    if ("all" in condition) return { all: condition.all.map(convert) };
    if ("no_report_s" in condition) {
      absencesMs.push(toMs(condition.no_report_s));
      return condition;
    }
    if ("rate_of" in condition) {
      hasRate = true;
      return condition;
    }
    return { metric: leafMetric(leaves.push(condition) - 1), op: ">", value: 0 };
  };
  const { condition, clear } = spec;
  const converted: RuleSpec = {
    ...spec,
    condition: convert(condition),
    clear: { ...clear, ...(clear.condition && { condition: convert(clear.condition) }) },
  };
  if (hasRate) return undefined;
  return {
    leaves,
    rule: compileRule(converted),
    absenceMs: absencesMs.length === 0 ? undefined : Math.min(...absencesMs),
  };
}
