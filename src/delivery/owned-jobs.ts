import { waitUntil } from "cloudflare:workers";
import { and, isNull, sql } from "drizzle-orm";
import type { OwnedJob, OwnedJobs } from "../accounts/owned-jobs.ts";
import { outbox } from "../broker/outbox-table.ts";
import { emulations } from "../emulator/emulation-tables.ts";
import { jobs } from "../jobs/job-table.ts";
import { IS_OPEN } from "../jobs/quotas.ts";
import type { StreamClient } from "../jobs/stream/stream-client.ts";
import { describeError, log } from "../lib/log.ts";
import type { Database } from "../storage/libsql.ts";

/** The platform limits how many objects one request may call. The streams of other jobs end when they next report their state. */
const MAX_CLOSED = 500;
const CLOSED_AT_ONCE = 8;

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
        database
          .update(jobs)
          .set({ state: "cancelled", detail: "The owner was deleted", updatedAt: at })
          .where(isOpenJob)
          .returning({ jobNumber: jobs.jobNumber }),
      ];
    },

    closeStreams: (ended) => waitUntil(closeAll(streams, ended)),
  };
}

/** Closes as many as it can; never fails. */
async function closeAll(streams: Pick<StreamClient, "close">, ended: readonly OwnedJob[]): Promise<void> {
  const waiting = ended.slice(0, MAX_CLOSED);
  let failures = 0;
  const lane = async (): Promise<void> => {
    for (let job = waiting.pop(); job !== undefined; job = waiting.pop()) {
      await streams.close(job.jobNumber, "cancelled").catch((error: unknown) => {
        if (failures++ === 0) log.warn("stream of a deleted account not closed", { error: describeError(error) });
      });
    }
  };
  await Promise.all(Array.from({ length: CLOSED_AT_ONCE }, lane));
}
