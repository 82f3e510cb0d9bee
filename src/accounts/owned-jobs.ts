import type { SQL } from "drizzle-orm";
import type { BatchItem } from "drizzle-orm/batch";
import type { RunnableQuery } from "drizzle-orm/runnable-query";

/** The jobs of an account, which end when the account is deleted. */
export interface OwnedJobs {
  /**
   * Returns statements for the batch that deletes the account, to run before the deletion. The last one returns the job numbers.
   *
   * @param ownerId the account's id, or a query for it that finds nothing if the account stays
   */
  end(ownerId: SQL): readonly [BatchItem<"sqlite">, BatchItem<"sqlite">, RunnableQuery<OwnedJob[], "sqlite">];
  /** Closes the streams of ended jobs in the background. */
  closeStreams(jobs: readonly OwnedJob[]): void;
}

export interface OwnedJob {
  jobNumber: string;
}
