import { and, isNull, type SQL, sql } from "drizzle-orm";
import type { Database } from "../accounts/database.ts";
import { outbox } from "../broker/tables.ts";
import { emulations } from "../emulator/tables.ts";
import { IS_OPEN } from "./quotas.ts";
import { jobs } from "./tables.ts";

/**
 * Statements that end everything that an account has open, for the same batch as its deletion and before it. The last one returns the
 * numbers of the jobs.
 *
 * @param ownerId the account's id, or a query for it that finds nothing if the account stays
 */
export function endJobsOf(database: Database, ownerId: SQL, nowMs: number) {
  const at = new Date(nowMs);
  const isOpenJob = sql`owner_id = ${ownerId} and ${IS_OPEN}`;
  return [
    database.delete(outbox).where(sql`job_number in (select job_number from jobs where ${isOpenJob})`),
    database
      .update(emulations)
      .set({ endedAt: at })
      .where(and(sql`owner_id = ${ownerId}`, isNull(emulations.endedAt))),
    database
      .update(jobs)
      .set({ state: "cancelled", detail: "The owner was deleted", updatedAt: at })
      .where(isOpenJob)
      .returning({ jobNumber: jobs.jobNumber }),
  ] as const;
}
