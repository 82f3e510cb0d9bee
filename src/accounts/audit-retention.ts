import { and, asc, inArray, lt } from "drizzle-orm";
import { describeError, log } from "../lib/log.ts";
import type { Database } from "../storage/libsql.ts";
import { audit } from "./account-tables.ts";

/** Of the oldest entries, so many are looked at at once. */
const FORGOTTEN_AT_ONCE = 500;

/**
 * Removes what is too old of the audit trail. To be called where new entries have come: so it needs no clock of its own. Entries are
 * numbered in the order of time, and a look at the first ones finds those that are too old.
 */
export async function pruneAuditTrail(database: Database, keptMs: number): Promise<void> {
  const oldest = database.select({ id: audit.id }).from(audit).orderBy(asc(audit.id)).limit(FORGOTTEN_AT_ONCE);
  try {
    await database.delete(audit).where(and(inArray(audit.id, oldest), lt(audit.at, new Date(Date.now() - keptMs))));
  } catch (error) {
    // The next ones that come make up for it.
    log.warn("old entries of the audit trail not removed", { error: describeError(error) });
  }
}
