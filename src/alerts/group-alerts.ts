import { and, eq, isNull, sql } from "drizzle-orm";
import * as z from "zod";
import { agents } from "../accounts/account-tables.ts";
import { isChosen } from "../accounts/agents/agent-conditions.ts";
import { renderText } from "../rules/rule-text.ts";
import { type Database, query } from "../storage/libsql.ts";
import type { ActiveSilences } from "./active-silences.ts";
import { alertEvent, type DescribedAlert, insertEvents } from "./alert-events.ts";
import { AlertRow } from "./alert-store.ts";
import { alertMembers, alerts } from "./alert-tables.ts";
import type { MemberChange } from "./shard-events.ts";

/** Fires and ends the alerts about groups. */
export interface GroupAlerts {
  /**
   * Evaluates the groups of some members, whose changes are stored already. The shard whose change is stored last sees the changes of all
   * others. Returns whether a silence holds back an alert that fired.
   */
  evaluate(members: readonly MemberChange[], silences: ActiveSilences | undefined): Promise<boolean>;
}

const Counts = z.tuple([z.object({ firing: z.int(), total: z.int() })]);

export function createGroupAlerts(database: Database): GroupAlerts {
  /** Evaluates one group. Returns whether its alert fired and is silenced. */
  const evaluateGroup = async (member: MemberChange, silences: ActiveSilences | undefined): Promise<boolean> => {
    const { rule, groupValue, by, percent, atMs } = member;
    const isOpen = and(eq(alerts.ruleId, rule.id), eq(alerts.groupValue, groupValue), isNull(alerts.resolvedAt));
    const isInGroup = isChosen({ selector: [...member.selector, { key: by, values: [groupValue], negated: false }] });
    const total = sql`(select count(*) from ${agents} where ${isInGroup})`;
    const firing = sql`(select count(*) from ${agents} where ${isInGroup} and ap_id in
      (select ap_id from ${alertMembers} where rule_id = ${rule.id} and group_value = ${groupValue}))`;
    const isEnough = sql`(${firing} > 0 and ${firing} * 100.0 >= ${percent} * ${total})`;
    const [rows, [open]] = await query(
      database.batch([
        database.all(sql`select ${firing} as firing, ${total} as total`),
        database.select().from(alerts).where(isOpen),
      ]),
    );
    const [counts] = Counts.parse(rows);
    const share = counts.total === 0 ? 0 : (counts.firing * 100) / counts.total;
    const labels = { [by]: groupValue };
    const describe = (alertId: string, firedMs: number): DescribedAlert => {
      const text = renderText(rule, { group: groupValue, value: share, labels: { ...rule.labels, ...labels } });
      return { alertId, firedMs, rule, apId: null, groupValue, ownerId: null, labels, text, value: share };
    };
    if (open !== undefined) {
      const { id, firedAt } = AlertRow.parse(open);
      if (counts.firing > 0 && share >= percent) return false;
      await query(
        database.batch([
          // Nothing if a change of another shard has made the share larger meanwhile: that shard has left the alert open.
          database.run(
            sql`update ${alerts} set resolved_at = ${atMs} where id = ${id} and resolved_at is null and not ${isEnough}`,
          ),
          database.run(insertEvents([alertEvent(describe(id, firedAt.getTime()), { type: "alert.resolved", atMs })])),
        ]),
      );
      return false;
    }
    if (counts.firing === 0 || share < percent) return false;
    const alert = describe(crypto.randomUUID(), atMs);
    const { text } = alert;
    const described = { ruleId: rule.id, apId: null, labels, ruleLabels: rule.labels, ownerId: null };
    const isSilenced = silences?.matches(described) ?? false;
    await query(
      database.batch([
        database.run(
          sql`insert into ${alerts}
                (id, rule_id, rule, severity, group_value, labels, rule_labels, text, value, fired_at, is_silenced)
              select ${alert.alertId}, ${rule.id}, ${rule.name}, ${rule.severity}, ${groupValue}, ${JSON.stringify(labels)},
                ${JSON.stringify(rule.labels)}, ${text}, ${share}, ${atMs}, ${Number(isSilenced)}
              where ${isEnough}
              on conflict do nothing`,
        ),
        // Nothing if another shard has inserted the alert of the group meanwhile.
        database.run(insertEvents([alertEvent(alert, { type: "alert.fired", atMs })])),
      ]),
    );
    return isSilenced;
  };

  return {
    async evaluate(members, silences) {
      const groups = Map.groupBy(members, ({ rule, groupValue }) => `${rule.id} ${groupValue}`);
      let isSilenced = false;
      for (const changes of groups.values()) {
        const last = changes.at(-1);
        if (last !== undefined && (await evaluateGroup(last, silences))) isSilenced = true;
      }
      return isSilenced;
    },
  };
}
