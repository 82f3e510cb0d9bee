import { and, asc, eq, gt, isNull, sql } from "drizzle-orm";
import * as z from "zod";
import { type Database, query } from "../storage/libsql.ts";
import type { ActiveSilences } from "./active-silences.ts";
import { alertEvent, insertEvents } from "./alert-events.ts";
import { AlertRow } from "./alert-store.ts";
import { alerts } from "./alert-tables.ts";

/** Alerts in one query. */
const PAGE_SIZE = 500;

/**
 * Returns a function that writes the events of alerts that still fire and that no silence holds back any more. Any shard may call it, and
 * several at once: the source of an event follows from its alert. Returns when the next silence ends, or undefined if no alert waits for it.
 */
export function createSilenceRelease(
  database: Database,
  readSilences: (nowMs: number) => Promise<ActiveSilences>,
  now: () => number,
): () => Promise<number | undefined> {
  const heldBack = and(eq(alerts.isSilenced, true), isNull(alerts.resolvedAt));

  const release = async (list: readonly AlertRow[]): Promise<void> => {
    const events = list.map((alert) =>
      alertEvent(
        {
          ...alert,
          alertId: alert.id,
          firedMs: alert.firedAt.getTime(),
          rule: { id: alert.ruleId, name: alert.rule, severity: alert.severity, labels: alert.ruleLabels },
        },
        { type: "alert.fired", atMs: now() },
      ),
    );
    const ids = JSON.stringify(list.map(({ id }) => id));
    await query(
      database.batch([
        database
          .update(alerts)
          .set({ isSilenced: false })
          .where(and(heldBack, sql`id in (select value from json_each(${ids}))`)),
        // An alert that has ended meanwhile is still silenced, so it gets no event.
        database.run(insertEvents(events)),
      ]),
    );
  };

  return async () => {
    const silences = await readSilences(now());
    let isLeft = false;
    for (let after = ""; ; ) {
      const isNext = and(heldBack, gt(alerts.id, after));
      const page = database.select().from(alerts).where(isNext).orderBy(asc(alerts.id)).limit(PAGE_SIZE);
      const rows = z.array(AlertRow).parse(await query(page));
      const due = rows.filter((alert) => !silences.matches(alert));
      if (due.length > 0) await release(due);
      isLeft ||= due.length < rows.length;
      const last = rows.at(-1);
      if (last === undefined || rows.length < PAGE_SIZE) return isLeft ? silences.nextEndMs : undefined;
      after = last.id;
    }
  };
}
