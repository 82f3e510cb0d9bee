import type { Condition, OPERATORS } from "../../../../schemas/alerts/rule.ts";
import { durationText } from "../../../lib/duration.ts";
import { numberText } from "../../../lib/format.ts";

/** Conditions of rules in words. */

export type Operator = (typeof OPERATORS)[number];

export const OPERATOR_TEXTS: Record<Operator, string> = {
  ">": "above",
  ">=": "at least",
  "<": "below",
  "<=": "at most",
};

/** Describes a condition: "load above 0.9 or no report for 1 min". */
export function conditionText(condition: Condition): string {
  if ("any" in condition) return condition.any.map(innerText).join(" or ");
  if ("all" in condition) return condition.all.map(innerText).join(" and ");
  if ("no_report_s" in condition) return `no report for ${durationText(condition.no_report_s)}`;
  if ("rate_of" in condition) {
    const { rate_of, over_s, op, value } = condition;
    return `change of ${rate_of} per second, over ${durationText(over_s)}, ${OPERATOR_TEXTS[op]} ${numberText(value)}`;
  }
  const { metric, op } = condition;
  if ("value" in condition) return `${metric} ${OPERATOR_TEXTS[op]} ${numberText(condition.value)}`;
  const { days, factor } = condition.baseline;
  const mean = `its mean at this hour of the last ${days === 1 ? "day" : `${days} days`}`;
  return `${metric} ${OPERATOR_TEXTS[op]} ${factor === 1 ? "" : `${numberText(factor)} × `}${mean}`;
}

const innerText = (condition: Condition): string =>
  "any" in condition || "all" in condition ? `(${conditionText(condition)})` : conditionText(condition);

/** Returns the metrics of a condition, the first one first. */
export function metricsOf(condition: Condition): string[] {
  if ("any" in condition || "all" in condition) {
    const inner = "any" in condition ? condition.any : condition.all;
    return [...new Set(inner.flatMap(metricsOf))];
  }
  if ("no_report_s" in condition) return [];
  return ["rate_of" in condition ? condition.rate_of : condition.metric];
}

/** Returns the thresholds of a metric in a condition. */
export function levelsOf(condition: Condition, metric: string): number[] {
  if ("any" in condition) return condition.any.flatMap((inner) => levelsOf(inner, metric));
  if ("all" in condition) return condition.all.flatMap((inner) => levelsOf(inner, metric));
  const isLevel = "metric" in condition && "value" in condition && condition.metric === metric;
  return isLevel ? [condition.value] : [];
}

/** Shown for rules without a metric: their access points stop reporting. */
export const FALLBACK_METRIC = "load";
