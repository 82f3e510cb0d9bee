import { waitUntil } from "cloudflare:workers";
import { and, isNull, sql } from "drizzle-orm";
import type { OwnedJob, OwnedJobs } from "../accounts/owned-jobs.ts";
import { outbox } from "../broker/outbox-table.ts";
import { emulations } from "../emulator/emulation-tables.ts";
import { subscriptions } from "../events/event-tables.ts";
import { jobs } from "../jobs/job-table.ts";
import { IS_OPEN } from "../jobs/quotas.ts";
import type { StreamClient } from "../jobs/stream/stream-client.ts";
import { describeError, log } from "../lib/log.ts";
import type { Database } from "../storage/libsql.ts";

/** The platform limits the number of objects that a request may call. Other streams end when they next report their state. */
export const MAX_CALLED = 500;
const CONCURRENT_CALLS = 8;

/**
 * Ends the jobs and subscriptions of a deleted account. Outbox messages, emulations and rows change in the transaction that deletes the
 * account.
 */
export function createOwnedJobs(database: Database, streams: Pick<StreamClient, "close">): OwnedJobs {
  return {
    end(ownerId) {
      const at = new Date();
      const isOpenJob = sql`owner_id = ${ownerId} and ${IS_OPEN}`;
      return [
        database.delete(outbox).where(sql`job_number in (select job_number from jobs where ${isOpenJob})`),
        database
          .update(emulations)
          .set({ endedAt: at })
          .where(and(sql`owner_id = ${ownerId}`, isNull(emulations.endedAt))),
        database.delete(subscriptions).where(sql`owner_id = ${ownerId}`),
        database
          .update(jobs)
          .set({ state: "cancelled", detail: "The owner was deleted", updatedAt: at })
          .where(isOpenJob)
          .returning({ jobNumber: jobs.jobNumber }),
      ];
    },

    closeStreams: (ended) =>
      waitUntil(
        callStreams(
          ended,
          ({ jobNumber }) => streams.close(jobNumber, "cancelled"),
          (error) => log.warn("stream of a deleted account not closed", { error: describeError(error) }),
        ),
      ),
  };
}

/** Calls the streams of jobs, up to the limit. Never throws: it reports the first error. */
export async function callStreams(
  jobs: readonly OwnedJob[],
  call: (job: OwnedJob) => Promise<void>,
  onError: (error: unknown) => void,
): Promise<void> {
  const remaining = jobs.slice(0, MAX_CALLED).reverse();
  let failures = 0;
  const callNext = async (): Promise<void> => {
    for (let job = remaining.pop(); job !== undefined; job = remaining.pop()) {
      await call(job).catch((error: unknown) => {
        if (failures++ === 0) onError(error);
      });
    }
  };
  await Promise.all(Array.from({ length: CONCURRENT_CALLS }, callNext));
}
