import type { SQL } from "drizzle-orm";
import type { BatchItem } from "drizzle-orm/batch";
import type { RunnableQuery } from "drizzle-orm/runnable-query";

/** Ends the jobs of an account when the account is deleted. */
export interface OwnedJobs {
  /**
   * Returns statements for the batch that deletes the account. They must precede the deletion. The last one returns the job numbers.
   *
   * @param ownerId selects the account's id, or nothing if the account is not deleted
   */
  end(ownerId: SQL): readonly [BatchItem<"sqlite">, BatchItem<"sqlite">, RunnableQuery<OwnedJob[], "sqlite">];
  /** Closes the streams of ended jobs in the background. */
  closeStreams(jobs: readonly OwnedJob[]): void;
}

export interface OwnedJob {
  jobNumber: string;
}

/** What has changed: an account, agents (their labels, or whether they exist), or a group that grants refer to. */
export type AccessChange = { ownerId: string } | { apIds: readonly string[] } | { group: string };

/** Makes changes of access effective on the open sockets of jobs. */
export interface JobRechecks {
  /** Checks the readers of the jobs that a change concerns, in the background, and closes the sockets of those without access. */
  recheckJobsOf(change: AccessChange): void;
}
