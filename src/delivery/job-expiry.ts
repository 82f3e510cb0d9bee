import { SERVICE } from "../accounts/audit.ts";
import type { JobStore } from "../jobs/job-store.ts";
import type { StreamClient } from "../jobs/stream/stream-client.ts";
import { encodeJson } from "../lib/json-text.ts";
import type { Progress } from "../schemas/stream.ts";

/** The end of a job that nobody has answered in time. */
export interface JobExpiry {
  expire(jobNumber: string): Promise<void>;
}

const EXPIRY_KEY = "expiry";

export function createJobExpiry(
  index: Pick<JobStore, "update">,
  streams: Pick<StreamClient, "post" | "close">,
): JobExpiry {
  return {
    async expire(jobNumber) {
      // The index first: who answers at the same moment has either answered in time or is told that it was too late.
      const standing = await index.update(jobNumber, { state: "expired", detail: "Nobody answered in time" }, SERVICE);
      if (standing !== "expired") return;
      const data = encodeJson({ state: "expired", rows_sent: 0, rows_estimated: null } satisfies Progress);
      await streams.post(jobNumber, { type: "status", data, final: true, key: EXPIRY_KEY });
      await streams.close(jobNumber, "expired");
    },
  };
}
