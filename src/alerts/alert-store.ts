import { and, asc, desc, eq, inArray, isNotNull, isNull, type SQL, sql } from "drizzle-orm";
import * as z from "zod";
import { type AuditActor, actorText, auditIfChanged } from "../accounts/audit.ts";
import { events } from "../events/event-tables.ts";
import type { AlertsQuery } from "../schemas/alerts/alert.ts";
import { SEVERITIES, Severity } from "../schemas/events.ts";
import { type Database, query } from "../storage/libsql.ts";
import { alerts } from "./alert-tables.ts";

const Labels = z.record(z.string(), z.string());

export const AlertRow = z.object({
  id: z.string(),
  ruleId: z.string(),
  rule: z.string(),
  severity: Severity,
  apId: z.string().nullable(),
  groupValue: z.string().nullable(),
  labels: Labels,
  ruleLabels: Labels,
  ownerId: z.string().nullable(),
  text: z.string(),
  value: z.number().nullable(),
  firedAt: z.date(),
  resolvedAt: z.date().nullable(),
  acknowledgedAt: z.date().nullable(),
  acknowledgedBy: z.string().nullable(),
  isSilenced: z.boolean(),
});
export type AlertRow = z.output<typeof AlertRow>;

export type AlertFilter = Pick<AlertsQuery, "state" | "severity" | "before">;

/** Alerts that fire or have fired. `event-sink.ts` writes them. */
export interface AlertStore {
  find(id: string): Promise<AlertRow | undefined>;
  /** Returns the alerts of a filter, those that fired last first. */
  list(filter: AlertFilter, limit: number): Promise<AlertRow[]>;
  /** Records who has seen the alert, once, and an event about it. */
  acknowledge(alert: AlertRow, by: AuditActor): Promise<void>;
}

const IN_STATE: Record<AlertsQuery["state"], SQL | undefined> = {
  firing: isNull(alerts.resolvedAt),
  resolved: isNotNull(alerts.resolvedAt),
  all: undefined,
};

export function createAlertStore(database: Database): AlertStore {
  return {
    async find(id) {
      const [row] = await query(database.select().from(alerts).where(eq(alerts.id, id)));
      return row === undefined ? undefined : AlertRow.parse(row);
    },

    async list({ state, severity, before }, limit) {
      const least = severity === undefined ? 0 : SEVERITIES.indexOf(severity);
      const rows = await query(
        database
          .select()
          .from(alerts)
          .where(
            and(
              IN_STATE[state],
              least === 0 ? undefined : inArray(alerts.severity, SEVERITIES.slice(least)),
              before === undefined
                ? undefined
                : sql`(fired_at, id) < (select fired_at, id from ${alerts} where id = ${before})`,
            ),
          )
          .orderBy(desc(alerts.firedAt), desc(alerts.id))
          .limit(limit),
      );
      return z.array(AlertRow).parse(rows);
    },

    async acknowledge({ id, rule, ruleId, severity, apId, groupValue, labels, ruleLabels, ownerId, text }, by) {
      const [at, actor] = [new Date(), actorText(by)];
      const data = { alert_id: id, rule_id: ruleId, rule, group: groupValue, labels: ruleLabels, text };
      await query(
        database.batch([
          database
            .update(alerts)
            .set({ acknowledgedAt: at, acknowledgedBy: actor })
            .where(and(eq(alerts.id, id), isNull(alerts.acknowledgedAt))),
          auditIfChanged(database, by, "acknowledge", `alert:${id}`, JSON.stringify({ rule, ap_id: apId })),
          database.run(
            sql`insert into ${events} (at, type, severity, ap_id, labels, owner_id, actor, data)
                select ${at.getTime()}, 'alert.acknowledged', ${severity}, ${apId}, ${JSON.stringify(labels)}, ${ownerId},
                  ${actor}, ${JSON.stringify(data)}
                where changes() > 0`,
          ),
        ]),
      );
    },
  };
}

/** Days after which resolved alerts are deleted. */
const ALERT_DAYS = 90;
const PRUNED_AT_ONCE = 500;

/** Returns the statement that deletes old alerts, some at a time. */
export function pruneAlerts(database: Database, nowMs: number) {
  const oldest = database
    .select({ id: alerts.id })
    .from(alerts)
    .where(and(isNotNull(alerts.resolvedAt), sql`fired_at < ${nowMs - ALERT_DAYS * 86_400_000}`))
    .orderBy(asc(alerts.firedAt))
    .limit(PRUNED_AT_ONCE);
  return database.delete(alerts).where(inArray(alerts.id, oldest));
}
