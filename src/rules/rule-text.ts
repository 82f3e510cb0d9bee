import type { Labels } from "../lib/selectors.ts";
import type { Condition, RuleSpec } from "../schemas/alerts/rule.ts";

/** The texts of alerts, for people. */

export interface TextValues {
  apId?: string | undefined;
  /** The label value of the group, for an alert about a group. */
  group?: string | undefined;
  value?: number | undefined;
  /** The labels of the alert. */
  labels: Labels;
}

/** A text has up to 500 characters, and each of its placeholders may stand for a longer label. */
export const MAX_TEXT_LENGTH = 1_000;
const PLACEHOLDER = /\{\{\s*([A-Za-z0-9._/-]+)\s*\}\}/g;

/** Fills in the text of a rule. A placeholder without a value becomes `?`. A rule without a text gets one from its condition. */
export function renderText({ text, condition }: Pick<RuleSpec, "text" | "condition">, values: TextValues): string {
  const { apId, group, labels } = values;
  const value = values.value === undefined ? undefined : formatValue(values.value);
  const known = new Map([...Object.entries(labels), ["ap_id", apId], ["group", group], ["value", value]] as const);
  const template = text === "" ? defaultTemplate(condition, values) : text;
  return cut(template.replace(PLACEHOLDER, (_, name: string) => known.get(name) ?? "?"));
}

/** Prevents texts such as 0.30000000000000004. */
const formatValue = (value: number): string => String(Number(value.toPrecision(6)));

const defaultTemplate = (condition: Condition, { group, value }: TextValues): string =>
  `${group === undefined ? "{{ap_id}}" : "{{group}}"}: ${describeCondition(condition)}${value === undefined ? "" : " ({{value}})"}`;

/** Describes a condition in one line. */
export function describeCondition(condition: Condition): string {
  if ("any" in condition) return condition.any.map(describeInner).join(" or ");
  if ("all" in condition) return condition.all.map(describeInner).join(" and ");
  if ("no_report_s" in condition) return `no report for ${condition.no_report_s} s`;
  if ("rate_of" in condition)
    return `change of ${condition.rate_of} per second over ${condition.over_s} s ${condition.op} ${condition.value}`;
  const { metric, op } = condition;
  if ("value" in condition) return `${metric} ${op} ${condition.value}`;
  return `${metric} ${op} ${condition.baseline.factor} × its mean at this hour of ${condition.baseline.days} days`;
}

const describeInner = (condition: Condition): string =>
  "any" in condition || "all" in condition ? `(${describeCondition(condition)})` : describeCondition(condition);

/** Shortens a text to the limit. Does not leave half of a character. */
function cut(text: string): string {
  if (text.length <= MAX_TEXT_LENGTH) return text;
  const short = text.slice(0, MAX_TEXT_LENGTH - 1);
  return `${short.isWellFormed() ? short : short.slice(0, -1)}…`;
}
