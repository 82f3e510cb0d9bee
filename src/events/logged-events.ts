import { and, asc, gt, lte } from "drizzle-orm";
import * as z from "zod";
import { NetworkEvent } from "../schemas/events.ts";
import { type Database, query } from "../storage/libsql.ts";
import { events } from "./event-tables.ts";

/** An event, and the account that emulates its agent, which decides who sees it. */
export const LoggedEvent = z.object({ event: NetworkEvent, ownerId: z.string().nullable() });
export type LoggedEvent = z.output<typeof LoggedEvent>;

/** Returns events after an id, up to another one, in the order of their ids. */
export type ReadEvents = (afterId: number, lastId: number, limit: number) => Promise<LoggedEvent[]>;

export function createLoggedEvents(database: Database): ReadEvents {
  return async (afterId, lastId, limit) => {
    const rows = await query(
      database
        .select()
        .from(events)
        .where(and(gt(events.id, afterId), lte(events.id, lastId)))
        .orderBy(asc(events.id))
        .limit(limit),
    );
    return rows.map(({ id, at, type, severity, apId, labels, ownerId, actor, data }) =>
      LoggedEvent.parse({
        event: { id, time: at.toISOString(), type, severity, ap_id: apId, labels, actor, data },
        ownerId,
      }),
    );
  };
}
