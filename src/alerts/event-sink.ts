import { sql } from "drizzle-orm";
import { type Database, query } from "../storage/libsql.ts";
import type { ActiveSilences } from "./active-silences.ts";
import { changeEvent, insertEvents, presenceEvent } from "./alert-events.ts";
import { pruneAlerts } from "./alert-store.ts";
import { alertMembers, alerts } from "./alert-tables.ts";
import { createGroupAlerts } from "./group-alerts.ts";
import type { AlertChange, MemberChange, OutgoingEvent } from "./shard-events.ts";
import { createSilenceRelease } from "./silence-release.ts";

/** Writes what shards notice to the event log and to the alerts. */
export interface EventSink {
  /**
   * Writes events in their order. A second call with the same events changes nothing. Returns when to call `release`: undefined if no
   * silence holds back an alert of these.
   */
  upload(outgoing: readonly OutgoingEvent[]): Promise<number | undefined>;
  /**
   * Writes the events of alerts that still fire and that no silence holds back any more. Returns when to call it again: undefined if no
   * alert is held back.
   */
  release(): Promise<number | undefined>;
}

export function createEventSink(
  database: Database,
  readSilences: (nowMs: number) => Promise<ActiveSilences>,
  now: () => number = Date.now,
): EventSink {
  const groupAlerts = createGroupAlerts(database);
  const release = createSilenceRelease(database, readSilences, now);

  return {
    async upload(outgoing) {
      const changes = outgoing.flatMap(({ event }) => (event.kind === "alert" ? [event] : []));
      const members = outgoing.flatMap(({ event }) => (event.kind === "member" ? [event] : []));
      const mayFire = [...changes, ...members].some(({ isFiring }) => isFiring);
      const silences = mayFire ? await readSilences(now()) : undefined;
      const isSilenced = ({ apId, labels, ownerId, rule }: AlertChange): boolean =>
        silences?.matches({ ruleId: rule.id, apId, labels, ownerId, ruleLabels: rule.labels }) ?? false;
      const fired = changes
        .filter(({ isFiring }) => isFiring)
        .map((change) => ({ change, isSilenced: isSilenced(change) }));
      const events = outgoing.flatMap(({ source, event }) => {
        if (event.kind === "member") return [];
        return [event.kind === "presence" ? presenceEvent(source, event) : changeEvent(event)];
      });
      await query(
        database.batch([
          database.run(insertAlerts(fired)),
          database.run(resolveAlerts(changes.filter(({ isFiring }) => !isFiring))),
          database.run(insertEvents(events)),
          ...updateMembers(members).map((statement) => database.run(statement)),
          pruneAlerts(database, now()),
        ]),
      );
      const isGroupSilenced = await groupAlerts.evaluate(members, silences);
      return isGroupSilenced || fired.some((one) => one.isSilenced) ? silences?.nextEndMs : undefined;
    },

    release,
  };
}

const insertAlerts = (fired: readonly { change: AlertChange; isSilenced: boolean }[]) => sql`
  insert into ${alerts}
    (id, rule_id, rule, severity, ap_id, labels, rule_labels, owner_id, text, value, fired_at, is_silenced)
  select value ->> '$.change.alertId', value ->> '$.change.rule.id', value ->> '$.change.rule.name',
    value ->> '$.change.rule.severity', value ->> '$.change.apId', value -> '$.change.labels',
    value -> '$.change.rule.labels', value ->> '$.change.ownerId', value ->> '$.change.text', value ->> '$.change.value',
    value ->> '$.change.firedMs', value ->> '$.isSilenced'
  from json_each(${JSON.stringify(fired)}) where true
  on conflict (id) do nothing`;

const resolveAlerts = (resolved: readonly AlertChange[]) => sql`
  update ${alerts} set resolved_at = new.value ->> '$.atMs'
  from json_each(${JSON.stringify(resolved.map(({ alertId, atMs }) => ({ alertId, atMs })))}) as new
  where ${alerts.id} = new.value ->> '$.alertId' and resolved_at is null`;

/** Returns statements that store for which agents a condition holds. The last change of an agent counts. */
function updateMembers(members: readonly MemberChange[]) {
  if (members.length === 0) return [];
  const last = new Map(members.map((member) => [`${member.rule.id} ${member.apId}`, member]));
  const rows = JSON.stringify(
    [...last.values()].map(({ rule, apId, groupValue, isFiring }) => ({ ruleId: rule.id, apId, groupValue, isFiring })),
  );
  return [
    sql`delete from ${alertMembers} where (rule_id, ap_id) in
      (select value ->> '$.ruleId', value ->> '$.apId' from json_each(${rows}))`,
    sql`insert into ${alertMembers} (rule_id, ap_id, group_value)
      select value ->> '$.ruleId', value ->> '$.apId', value ->> '$.groupValue'
      from json_each(${rows}) where value ->> '$.isFiring'`,
  ];
}
