import type { RuleSpec } from "../../../../schemas/alerts/rule.ts";
import type { AlertRule } from "../../../../schemas/alerts/saved-rule.ts";
import type { Severity } from "../../../../schemas/events.ts";
import type { NewRule, NewRuleSpec } from "../../../api/alert-calls.ts";
import { type Duration, durationOf, secondsOf } from "../../../lib/duration.ts";
import { type LabelRow, labelsIn, rowsOf } from "../../../selectors/label-draft.ts";
import { problemIn } from "../../../selectors/selector-text.ts";
import { type ConditionDraft, fromConditionDraft, newCondition, toConditionDraft } from "./condition-draft.ts";

/** A rule in the editor. */
export interface RuleDraft {
  name: string;
  enabled: boolean;
  selector: string;
  condition: ConditionDraft;
  holdsFor: Duration;
  /** Undefined: the alert ends when the condition does not hold. */
  clear: ConditionDraft | undefined;
  clearFor: Duration;
  /** Undefined: one alert for each access point. */
  group: { by: string; percent: string } | undefined;
  severity: Severity;
  labels: LabelRow[];
  text: string;
  description: string;
}

export const newRule = (): RuleDraft => ({
  name: "",
  enabled: true,
  selector: "",
  condition: newCondition(),
  holdsFor: { amount: "5", unit: "min" },
  clear: undefined,
  clearFor: { amount: "1", unit: "min" },
  group: undefined,
  severity: "warning",
  labels: [],
  text: "",
  description: "",
});

export const toRuleDraft = ({ name, enabled, spec }: Pick<AlertRule, "name" | "enabled" | "spec">): RuleDraft => ({
  name,
  enabled,
  ...specDraft(spec),
});

const specDraft = ({ selector, condition, for_s, clear, group, severity, labels, text, description }: RuleSpec) => ({
  ...{ selector, severity, text, description },
  condition: toConditionDraft(condition),
  holdsFor: durationOf(for_s),
  clear: clear.condition && toConditionDraft(clear.condition),
  clearFor: durationOf(clear.for_s),
  group: group && { by: group.by, percent: String(group.percent) },
  labels: rowsOf(labels),
});

/** Returns the rule, or undefined while it is not complete. */
export function specIn(draft: RuleDraft): NewRuleSpec | undefined {
  const condition = fromConditionDraft(draft.condition);
  const clear = draft.clear && fromConditionDraft(draft.clear);
  const [for_s, clear_s] = [secondsIn(draft.holdsFor), secondsIn(draft.clearFor)];
  const percent = Number(draft.group?.percent);
  if (condition === undefined || for_s === undefined || clear_s === undefined) return undefined;
  if (problemIn(draft.selector) !== undefined) return undefined;
  if (draft.clear !== undefined && clear === undefined) return undefined;
  if (draft.group !== undefined && (draft.group.by.trim() === "" || !(percent > 0))) return undefined;
  return {
    selector: draft.selector.trim(),
    condition,
    for_s,
    clear: { ...(clear !== undefined && { condition: clear }), for_s: clear_s },
    ...(draft.group !== undefined && { group: { by: draft.group.by.trim(), percent } }),
    severity: draft.severity,
    labels: labelsIn(draft.labels),
    text: draft.text,
    description: draft.description,
  };
}

export function ruleIn(draft: RuleDraft): NewRule | undefined {
  const spec = specIn(draft);
  return spec && { name: draft.name.trim(), enabled: draft.enabled, spec };
}

function secondsIn(duration: Duration): number | undefined {
  const seconds = duration.amount.trim() === "" ? Number.NaN : secondsOf(duration);
  return Number.isFinite(seconds) ? seconds : undefined;
}
