import type { Condition } from "../../../../schemas/alerts/rule.ts";
import { type Duration, durationOf, secondsOf } from "../../../lib/duration.ts";
import type { Operator } from "./condition-text.ts";

/** A condition in the editor. Numbers are texts, as typed. */

export const CONDITION_KINDS = {
  threshold: "Metric against a value",
  baseline: "Metric against other days",
  rate: "Change of a metric",
  absence: "No report",
  any: "Any of several",
  all: "All of several",
} as const;
export type ConditionKind = keyof typeof CONDITION_KINDS;

/** Has the fields of all kinds, so that a change of the kind keeps what was typed. */
export interface ConditionDraft {
  /** Identifies the condition while it is typed. */
  id: number;
  kind: ConditionKind;
  metric: string;
  op: Operator;
  value: string;
  factor: string;
  days: string;
  over: Duration;
  absence: Duration;
  parts: readonly ConditionDraft[];
}

/** The service's limits. */
export const MAX_DEPTH = 3;
export const MAX_PARTS = 16;

let lastId = 0;

export const newCondition = (over: Partial<ConditionDraft> = {}): ConditionDraft => ({
  id: ++lastId,
  kind: "threshold",
  metric: "load",
  op: ">",
  value: "0.9",
  factor: "0.5",
  days: "7",
  over: { amount: "1", unit: "min" },
  absence: { amount: "1", unit: "min" },
  parts: [],
  ...over,
});

/** Returns a condition with another kind. A group of conditions starts with the present one. */
export function withKind(draft: ConditionDraft, kind: ConditionKind): ConditionDraft {
  const isGroup = kind === "any" || kind === "all";
  if (!isGroup || draft.parts.length > 0) return { ...draft, kind };
  return { ...draft, kind, parts: [{ ...draft, id: ++lastId }, newCondition({ kind: "absence" })] };
}

export function toConditionDraft(condition: Condition): ConditionDraft {
  if ("any" in condition) return newCondition({ kind: "any", parts: condition.any.map(toConditionDraft) });
  if ("all" in condition) return newCondition({ kind: "all", parts: condition.all.map(toConditionDraft) });
  if ("no_report_s" in condition) return newCondition({ kind: "absence", absence: durationOf(condition.no_report_s) });
  if ("rate_of" in condition) {
    const { rate_of, over_s, op, value } = condition;
    return newCondition({ kind: "rate", metric: rate_of, over: durationOf(over_s), op, value: String(value) });
  }
  const { metric, op } = condition;
  if ("value" in condition) return newCondition({ kind: "threshold", metric, op, value: String(condition.value) });
  const { days, factor } = condition.baseline;
  return newCondition({ kind: "baseline", metric, op, days: String(days), factor: String(factor) });
}

/** Returns the condition, or undefined while a field is empty or not a number. */
export function fromConditionDraft(draft: ConditionDraft): Condition | undefined {
  const { kind, op, parts } = draft;
  const metric = draft.metric.trim();
  if (kind === "any" || kind === "all") {
    const inner = parts.map(fromConditionDraft).filter((part) => part !== undefined);
    if (inner.length === 0 || inner.length < parts.length) return undefined;
    return kind === "any" ? { any: inner } : { all: inner };
  }
  if (kind === "absence") return whenNumbers([durationNumber(draft.absence)], ([no_report_s]) => ({ no_report_s }));
  if (metric === "") return undefined;
  if (kind === "threshold") return whenNumbers([numberIn(draft.value)], ([value]) => ({ metric, op, value }));
  if (kind === "rate")
    return whenNumbers([numberIn(draft.value), durationNumber(draft.over)], ([value, over_s]) => ({
      ...{ rate_of: metric, over_s, op, value },
    }));
  return whenNumbers([numberIn(draft.days), numberIn(draft.factor)], ([days, factor]) => ({
    ...{ metric, op, baseline: { days, factor } },
  }));
}

const numberIn = (text: string): number => (text.trim() === "" ? Number.NaN : Number(text));
const durationNumber = (duration: Duration): number =>
  duration.amount.trim() === "" ? Number.NaN : secondsOf(duration);

function whenNumbers<const N extends readonly number[]>(
  numbers: N,
  use: (numbers: N) => Condition,
): Condition | undefined {
  return numbers.every(Number.isFinite) ? use(numbers) : undefined;
}
