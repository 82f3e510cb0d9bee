import { and, asc, desc, eq, gt, inArray, lt, lte, type SQL, sql } from "drizzle-orm";
import * as z from "zod";
import { toIsoTime } from "../lib/iso-time.ts";
import { describeError, log } from "../lib/log.ts";
import { EVENT_TYPES, type EventType, type NetworkEvent, SEVERITIES, type Severity } from "../schemas/events.ts";
import { type Database, query } from "../storage/libsql.ts";
import { events } from "./event-tables.ts";

/** The name of the Durable Object that delivers events to subscriptions. */
export const NOTIFIER_NAME = "notifier";

/** An event with what decides who sees it. */
const EventRow = z.object({
  id: z.int(),
  at: z.date(),
  type: z.enum(EVENT_TYPES),
  severity: z.enum(SEVERITIES),
  apId: z.string().nullable(),
  labels: z.record(z.string(), z.string()),
  ownerId: z.string().nullable(),
  actor: z.string().nullable(),
  data: z.record(z.string(), z.unknown()),
});
export type EventRow = z.output<typeof EventRow>;

/** An event about an agent needs no labels and no owner: a trigger copies them from the agent. */
export interface NewEvent {
  atMs: number;
  type: EventType;
  severity: Severity;
  apId?: string | undefined;
  labels?: Readonly<Record<string, string>> | undefined;
  ownerId?: string | undefined;
  actor?: string | undefined;
  data: Record<string, unknown>;
  /** Unique name of an event that may be inserted again. Only the first insertion counts. */
  source?: string | undefined;
}

export interface EventPageQuery {
  after: number;
  /** The last id to read. */
  upTo?: number | undefined;
  types?: readonly EventType[] | undefined;
  /** Only events about this agent. */
  agent?: string | undefined;
  /** Only events that are at least as severe. */
  severity?: Severity | undefined;
  limit: number;
}

/** The event log in libSQL. */
export interface EventLog {
  /** Returns the next events of all accounts, in the order of their ids. */
  readAfter(page: EventPageQuery): Promise<EventRow[]>;
  /** Returns the last events up to an id, also in the order of their ids. */
  readNewest(page: Omit<EventPageQuery, "after">): Promise<EventRow[]>;
  /** Returns the id of the newest event, also if it was removed since. 0 if there never was one. */
  newestId(): Promise<number>;
  /** Inserts events in one transaction. Skips those whose source exists. */
  append(newEvents: readonly NewEvent[]): Promise<void>;
}

const COLUMNS = {
  id: events.id,
  at: events.at,
  type: events.type,
  severity: events.severity,
  apId: events.apId,
  labels: events.labels,
  ownerId: events.ownerId,
  actor: events.actor,
  data: events.data,
};

/** SQLite accepts 32,766 parameters in a statement. */
const ROWS_PER_STATEMENT = 1_000;

const Sequences = z.array(z.object({ seq: z.int() })).max(1);

/** Rows are read in the order of their ids, so the index of the types is of no use. */
const filterOf = ({ upTo, types, agent, severity = "info" }: Omit<EventPageQuery, "after">) =>
  and(
    upTo === undefined ? undefined : lte(events.id, upTo),
    types === undefined ? undefined : inArray(sql`+${events.type}`, [...types]),
    agent === undefined ? undefined : eq(events.apId, agent),
    severity === "info" ? undefined : inArray(events.severity, SEVERITIES.slice(SEVERITIES.indexOf(severity))),
  );

export function createEventLog(database: Database): EventLog {
  const select = (where: SQL | undefined, order: SQL, limit: number) =>
    query(database.select(COLUMNS).from(events).where(where).orderBy(order).limit(limit));

  return {
    async readAfter({ after, limit, ...filter }) {
      const rows = await select(and(gt(events.id, after), filterOf({ ...filter, limit })), asc(events.id), limit);
      return z.array(EventRow).parse(rows);
    },

    async readNewest({ limit, ...filter }) {
      const rows = await select(filterOf({ ...filter, limit }), desc(events.id), limit);
      return z.array(EventRow).parse(rows.toReversed());
    },

    async newestId() {
      // The database keeps the last id of each table, so that it never assigns an id twice.
      const rows = await query(database.all(sql`select seq from sqlite_sequence where name = 'events'`));
      return Sequences.parse(rows)[0]?.seq ?? 0;
    },

    async append(newEvents) {
      const rows = newEvents.map(({ atMs, ...event }) => ({ at: new Date(atMs), ...event }));
      const insert = (from: number) =>
        database
          .insert(events)
          .values(rows.slice(from, from + ROWS_PER_STATEMENT))
          .onConflictDoNothing();
      const others = Array.from({ length: Math.ceil(rows.length / ROWS_PER_STATEMENT) - 1 }, (_, i) =>
        insert((i + 1) * ROWS_PER_STATEMENT),
      );
      if (rows.length > 0) await query(database.batch([insert(0), ...others]));
    },
  };
}

/** Returns an event in the form of the API. */
export const toNetworkEvent = ({ id, at, type, severity, apId, labels, actor, data }: EventRow): NetworkEvent => ({
  id,
  time: toIsoTime(at.getTime()),
  type,
  severity,
  ap_id: apId,
  labels,
  actor,
  data,
});

/** Events per statement. */
const PRUNED_AT_ONCE = 5_000;

/**
 * Removes events that are older than `maxAgeMs`. Like `pruneAuditTrail`, it checks only those with the lowest ids, and the next call
 * continues. Never throws.
 */
export async function pruneEvents(database: Database, maxAgeMs: number): Promise<void> {
  const oldest = database.select({ id: events.id }).from(events).orderBy(asc(events.id)).limit(PRUNED_AT_ONCE);
  try {
    await database
      .delete(events)
      .where(and(inArray(events.id, oldest), lt(events.at, new Date(Date.now() - maxAgeMs))));
  } catch (error) {
    log.warn("event log prune failed", { error: describeError(error) });
  }
}
