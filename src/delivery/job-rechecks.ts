import { waitUntil } from "cloudflare:workers";
import { desc, type SQL, sql } from "drizzle-orm";
import { refersTo } from "../accounts/group-store.ts";
import type { AccessChange, JobRechecks } from "../accounts/owned-jobs.ts";
import { jobs } from "../jobs/job-table.ts";
import { IS_OPEN } from "../jobs/quotas.ts";
import type { StreamClient } from "../jobs/stream/stream-client.ts";
import { describeError, log } from "../lib/log.ts";
import { type Database, query } from "../storage/libsql.ts";
import { callStreams, MAX_CALLED } from "./owned-jobs.ts";

/** Without a recheck, a socket loses access before its next message, or within five minutes if it is idle. */
export function createJobRechecks(database: Database, streams: Pick<StreamClient, "recheck">): JobRechecks {
  const recheck = async (change: AccessChange): Promise<void> => {
    try {
      const concerned = await query(
        database
          .select({ jobNumber: jobs.jobNumber })
          .from(jobs)
          .where(isConcerned(change))
          // Open jobs first: only they get new messages.
          .orderBy(desc(sql`${IS_OPEN}`), desc(jobs.createdAt))
          .limit(MAX_CALLED),
      );
      await callStreams(concerned, ({ jobNumber }) => streams.recheck(jobNumber).catch(ignoreUnknownMethod), warn);
    } catch (error) {
      warn(error);
    }
  };
  return { recheckJobsOf: (change) => waitUntil(recheck(change)) };
}

/** Returns the condition for the jobs that a change concerns. Ended jobs of an agent are omitted: they may be many. */
function isConcerned(change: AccessChange): SQL {
  if ("ownerId" in change) return sql`owner_id = ${change.ownerId}`;
  if ("apIds" in change) {
    const names = JSON.stringify(change.apIds);
    return sql`target in (select value from json_each(${names})) and kind in ('agent_data', 'command') and ${IS_OPEN}`;
  }
  const isReferring = refersTo(change.group);
  return sql`owner_id in (
    select id from users where ${isReferring} union all select id from apps where ${isReferring}) and ${IS_OPEN}`;
}

/** An object that still runs an earlier version has no such method. Its own checks apply. */
function ignoreUnknownMethod(error: unknown): void {
  if (!(error instanceof Error && error.message.includes("does not implement"))) throw error;
}

const warn = (error: unknown): void => log.warn("job sockets not rechecked", { error: describeError(error) });
