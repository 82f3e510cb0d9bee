import type { AlertChange, MemberChange, ResolvedReason } from "../../../alerts/shard-events.ts";
import { renderText } from "../../../rules/rule-text.ts";
import type { AgentEntry } from "./agent-entry.ts";
import type { FiringAlert, Watch } from "./watch-set.ts";
import { groupOf } from "./watched-rule.ts";

/** Describes what has happened to a rule of an agent. */

export interface Change {
  isFiring: boolean;
  atMs: number;
  value: number | undefined;
  reason?: ResolvedReason;
}

/** Returns the change of an alert about an agent. */
export function alertChange(
  { apId, info }: AgentEntry,
  { rule }: Watch,
  alert: FiringAlert,
  change: Change,
): AlertChange {
  const { isFiring, atMs, value, reason } = change;
  const labels = info?.labels ?? {};
  const text = renderText(rule.source.spec, { apId, value, labels: { ...rule.described.labels, ...labels } });
  return {
    kind: "alert",
    isFiring,
    atMs,
    alertId: alert.id,
    firedMs: alert.firedMs,
    rule: rule.described,
    apId,
    ownerId: info?.ownerId ?? null,
    labels,
    text,
    value: value ?? null,
    reason: isFiring ? null : (reason ?? "condition"),
  };
}

/** Returns the change of a member of a group. Undefined if the rule is not about groups. */
export function memberChange({ apId, info }: AgentEntry, { rule }: Watch, change: Change): MemberChange | undefined {
  const { spec, selector } = rule.source;
  const groupValue = groupOf(rule, info?.labels ?? {});
  if (spec.group === undefined || groupValue === undefined) return undefined;
  return {
    kind: "member",
    isFiring: change.isFiring,
    atMs: change.atMs,
    rule: { ...rule.described, text: spec.text, condition: spec.condition },
    selector,
    by: spec.group.by,
    percent: spec.group.percent,
    groupValue,
    apId,
  };
}
