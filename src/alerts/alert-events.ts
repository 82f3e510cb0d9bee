import { type SQL, sql } from "drizzle-orm";
import { agentLabels, agents } from "../accounts/account-tables.ts";
import { events } from "../events/event-tables.ts";
import { toIsoTime } from "../lib/iso-time.ts";
import type { Labels } from "../lib/selectors.ts";
import type { EventType, Severity } from "../schemas/events.ts";
import { alerts } from "./alert-tables.ts";
import type { AlertChange, AlertingRule, OutgoingEvent, PresenceChange, ResolvedReason } from "./shard-events.ts";

/** An event to insert. Its time, labels and data are JSON. */
export interface NewEvent {
  at: number;
  type: EventType;
  severity: Severity;
  apId: string | null;
  /** Null: those that the agent has now. */
  labels: Labels | null;
  ownerId: string | null;
  data: Record<string, unknown>;
  source: string;
  /** The event is written only if this alert exists and no silence holds it back. Null: only if the agent exists. */
  alertId: string | null;
}

/** An alert as its events describe it. */
export interface DescribedAlert {
  alertId: string;
  firedMs: number;
  rule: AlertingRule;
  apId: string | null;
  groupValue: string | null;
  ownerId: string | null;
  labels: Labels;
  text: string;
  value: number | null;
}

/** Returns the event of an alert. Its source follows from the alert, so that there is one, however often it is written. */
export function alertEvent(
  alert: DescribedAlert,
  change: { type: "alert.fired" | "alert.resolved"; atMs: number; reason?: ResolvedReason | null },
): NewEvent {
  const { alertId, firedMs, rule, apId, groupValue, ownerId, labels, text, value } = alert;
  const isResolved = change.type === "alert.resolved";
  return {
    at: change.atMs,
    type: change.type,
    severity: rule.severity,
    apId,
    labels,
    ownerId,
    data: {
      alert_id: alertId,
      rule_id: rule.id,
      rule: rule.name,
      group: groupValue,
      labels: rule.labels,
      text,
      value,
      fired_at: toIsoTime(firedMs),
      ...(isResolved && { resolved_at: toIsoTime(change.atMs), reason: change.reason ?? "condition" }),
    },
    source: `alert/${alertId}/${isResolved ? "resolved" : "fired"}`,
    alertId,
  };
}

export const changeEvent = (change: AlertChange): NewEvent =>
  alertEvent(
    { ...change, groupValue: null },
    { type: change.isFiring ? "alert.fired" : "alert.resolved", atMs: change.atMs, reason: change.reason },
  );

export const presenceEvent = (
  source: OutgoingEvent["source"],
  { isOnline, atMs, apId, lastSeenMs }: PresenceChange,
): NewEvent => ({
  at: atMs,
  type: isOnline ? "agent.online" : "agent.offline",
  severity: isOnline ? "info" : "warning",
  apId,
  labels: null,
  ownerId: null,
  data: { last_seen: toIsoTime(lastSeenMs) },
  source,
  alertId: null,
});

/**
 * Returns the statement that inserts events, in their order. Those that exist stay as they are. The end of an alert has the labels and the
 * severity of its beginning, which may have changed meanwhile: receivers recognise an alert by them.
 */
export const insertEvents = (list: readonly NewEvent[]): SQL => sql`
  insert into ${events} (at, type, severity, ap_id, labels, owner_id, data, source)
  select new.value ->> '$.at', new.value ->> '$.type', coalesce(alert.severity, new.value ->> '$.severity'), new.value ->> '$.apId',
    coalesce(alert.labels, iif(new.value ->> '$.labels' is not null, new.value -> '$.labels',
      (select json_group_object(key, value) from ${agentLabels} where ap_id = new.value ->> '$.apId'))),
    coalesce(new.value ->> '$.ownerId', agent.owner_id), new.value -> '$.data', new.value ->> '$.source'
  from json_each(${JSON.stringify(list)}) as new
  left join ${agents} as agent on agent.ap_id = new.value ->> '$.apId'
  left join ${alerts} as alert on alert.id = new.value ->> '$.alertId'
  where iif(new.value ->> '$.alertId' is null, agent.id is not null, alert.is_silenced = 0)
    and (new.value ->> '$.type' <> 'alert.resolved' or alert.resolved_at is not null)
  order by new.key
  on conflict (source) do nothing`;
