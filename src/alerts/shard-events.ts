import type { Labels, Selector } from "../lib/selectors.ts";
import type { RuleSpec } from "../schemas/alerts/rule.ts";
import type { Severity } from "../schemas/events.ts";

/** What shards notice. Each is stored as JSON in the shard until libSQL has it. */
export type ShardEvent = PresenceChange | AlertChange | MemberChange;

export interface PresenceChange {
  kind: "presence";
  isOnline: boolean;
  atMs: number;
  apId: string;
  /** When the service last received something from the agent. */
  lastSeenMs: number;
}

/** The rule of an alert, as it was when the alert changed. */
export interface AlertingRule {
  id: string;
  name: string;
  severity: Severity;
  labels: Labels;
}

/** An alert about an agent has fired or ended. */
export interface AlertChange {
  kind: "alert";
  isFiring: boolean;
  atMs: number;
  /** Chosen at random when it fires. */
  alertId: string;
  firedMs: number;
  rule: AlertingRule;
  apId: string;
  ownerId: string | null;
  labels: Labels;
  text: string;
  value: number | null;
  reason: ResolvedReason | null;
}

/** The condition of a rule about groups holds for an agent, or does not hold any more. */
export interface MemberChange {
  kind: "member";
  isFiring: boolean;
  atMs: number;
  rule: AlertingRule & Pick<RuleSpec, "text" | "condition">;
  /** The rule's selector without references to groups. */
  selector: Selector;
  by: string;
  percent: number;
  groupValue: string;
  apId: string;
}

/** Why an alert ended: its condition does not hold any more, or the rule does not watch the agent any more. */
export const RESOLVED_REASONS = ["condition", "not_watched"] as const;
export type ResolvedReason = (typeof RESOLVED_REASONS)[number];

export interface OutgoingEvent {
  /** Names the event, so that it can be sent again. */
  source: string;
  event: ShardEvent;
}
