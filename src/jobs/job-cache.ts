import type { Actor } from "../auth/identity.ts";
import { NotAllowed } from "../lib/errors.ts";
import { TtlCache } from "../lib/ttl-cache.ts";
import { type JobRow, type JobStore, ownerOf } from "./job-store.ts";

/** Jobs as callbacks and sockets name them: by a number that the service gave out, or one of the caller's own. */
export interface JobCache {
  /** The state that it tells may be an earlier one. */
  find(jobNumber: string): Promise<JobRow | undefined>;
  /** A number that nobody has used: whoever names it first owns it. An agent cannot. */
  claim(actor: Actor, jobNumber: string): Promise<JobRow>;
}

/** A job's owner and target never change, and its object knows best whether it is closed. */
const KNOWN_MS = 60_000;
const MAX_KNOWN = 10_000;

export function createJobCache(index: JobStore, now: () => number = Date.now): JobCache {
  const known = new TtlCache<JobRow>({ maxEntries: MAX_KNOWN, now });
  return {
    async find(jobNumber) {
      const job = known.get(jobNumber) ?? (await index.find(jobNumber));
      if (job !== undefined) known.set(jobNumber, job, now() + KNOWN_MS);
      return job;
    },

    async claim(actor, jobNumber) {
      if (actor.kind === "agent") throw new NotAllowed();
      return await index.insert({ jobNumber, kind: "stream", state: "running", target: null, ...ownerOf(actor) });
    },
  };
}
