import type { Actor } from "../auth/identity.ts";
import { NotAllowed } from "../lib/errors.ts";
import { TtlCache } from "../lib/ttl-cache.ts";
import { type JobRow, type JobStore, ownerOf } from "./job-store.ts";

/** Finds the job of a callback or a socket by its number, which the service issued or a caller chose. */
export interface JobCache {
  /** Returns the job. Its state may be out of date. */
  find(jobNumber: string): Promise<JobRow | undefined>;
  /** Creates a job with a number that the caller chose. The caller becomes its owner. Throws `NotAllowed` for an agent. */
  claim(actor: Actor, jobNumber: string): Promise<JobRow>;
}

/** A job's owner and target never change. Its Durable Object decides whether it is closed, so a cached state does no harm. */
const CACHED_MS = 60_000;
const MAX_CACHED = 10_000;

export function createJobCache(jobStore: JobStore, now: () => number = Date.now): JobCache {
  const cached = new TtlCache<JobRow>({ maxEntries: MAX_CACHED, now });
  return {
    async find(jobNumber) {
      const job = cached.get(jobNumber) ?? (await jobStore.find(jobNumber));
      if (job !== undefined) cached.set(jobNumber, job, now() + CACHED_MS);
      return job;
    },

    async claim(actor, jobNumber) {
      if (actor.kind === "agent") throw new NotAllowed();
      return await jobStore.insert({ jobNumber, kind: "stream", state: "running", target: null, ...ownerOf(actor) });
    },
  };
}
