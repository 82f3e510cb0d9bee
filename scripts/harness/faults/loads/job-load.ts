import { makeUser } from "../../accounts.ts";
import { until } from "../../product.ts";
import type { Target } from "../../target.ts";
import { TrialJob, type TrialJobOptions } from "../../trial-job.ts";
import type { Load, Verdict } from "./load.ts";

/** Callbacks are posted and read through sockets: what was acknowledged must reach every reader, once, in order and without a hole. */

export interface JobsOptions extends Omit<TrialJobOptions, "readers"> {
  /** How many read each job. */
  readersOfJobs: readonly number[];
}

export interface JobsLoad extends Load {
  settle(): Promise<JobsVerdict>;
}

export interface JobsVerdict extends Verdict {
  faults: {
    /** A message after one that it should have come before, by its number or by its sender's; or another under the same number. */
    inversions: number;
    /** Numbers left out on a connection, or between it and the one before. */
    holes: number;
    /** Readers that do not have everything in the end. */
    incomplete: number;
  };
  connections: number;
}

const READ_WITHIN_MS = 60_000;

export async function startJobs(target: Target, { readersOfJobs, ...options }: JobsOptions): Promise<JobsLoad> {
  const { token } = await makeUser(target.dataDir, `faults-jobs-${Date.now()}@example.com`);
  const jobs = readersOfJobs.map((readers) => new TrialJob(target, token, { ...options, readers }));
  const stopSending = new AbortController();
  const stopReading = new AbortController();
  const readers = jobs.flatMap((job) => job.read(stopReading.signal));
  const senders = jobs.flatMap((job) => job.send(stopSending.signal));
  return {
    name: "callbacks",
    get acknowledged() {
      return jobs.reduce((sum, job) => sum + job.acknowledged.size, 0);
    },
    async stop() {
      stopSending.abort();
      await Promise.all(senders);
    },
    async settle() {
      const startedMs = performance.now();
      await until(() => jobs.every((job) => job.isRead), READ_WITHIN_MS).catch(() => {});
      const settledMs = performance.now() - startedMs;
      stopReading.abort();
      await Promise.all(readers);
      const found = jobs.map((job) => job.compare());
      const sum = (name: keyof ReturnType<TrialJob["compare"]>) => found.reduce((all, of) => all + of[name], 0);
      return {
        lost: sum("lost"),
        doubled: sum("doubled"),
        faults: { inversions: sum("inversions"), holes: sum("holes"), incomplete: sum("incomplete") },
        connections: sum("connections"),
        settledMs,
      };
    },
  };
}
