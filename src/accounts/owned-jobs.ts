import type { SQL } from "drizzle-orm";
import type { BatchItem } from "drizzle-orm/batch";
import type { RunnableQuery } from "drizzle-orm/runnable-query";
import { type Database, query } from "../storage/libsql.ts";

/** Ends the jobs and the subscriptions of an account when the account is deleted. */
export interface OwnedJobs {
  /**
   * Returns statements for the batch that deletes the account. They must precede the deletion. The last one returns the job numbers.
   *
   * @param ownerId selects the account's id, or nothing if the account is not deleted
   */
  end(
    ownerId: SQL,
  ): readonly [BatchItem<"sqlite">, BatchItem<"sqlite">, BatchItem<"sqlite">, RunnableQuery<OwnedJob[], "sqlite">];
  /** Closes the streams of ended jobs in the background. */
  closeStreams(jobs: readonly OwnedJob[]): void;
}

export interface OwnedJob {
  jobNumber: string;
}

/**
 * Deletes an account, ends its jobs and records the deletion in one transaction. Returns the ended jobs, or undefined if the statement
 * deleted no account.
 */
export async function deleteOwner(
  database: Database,
  endJobs: ReturnType<OwnedJobs["end"]>,
  deletion: RunnableQuery<{ id: string }[], "sqlite">,
  auditEntry: BatchItem<"sqlite">,
): Promise<OwnedJob[] | undefined> {
  const [, , , ended, deleted] = await query(database.batch([...endJobs, deletion, auditEntry]));
  return deleted.length === 0 ? undefined : ended;
}

/** What has changed: an account, agents (their labels, or whether they exist), or a group that grants refer to. */
export type AccessChange = { ownerId: string } | { apIds: readonly string[] } | { group: string };

/** Makes changes of access effective on the open sockets of jobs. */
export interface JobRechecks {
  /** Checks the readers of the jobs that a change concerns, in the background, and closes the sockets of those without access. */
  recheckJobsOf(change: AccessChange): void;
}
