import { SERVICE } from "../accounts/audit.ts";
import type { JobStore } from "../jobs/job-store.ts";
import type { StreamClient } from "../jobs/stream/stream-client.ts";
import { encodeJson } from "../lib/encoding.ts";
import type { Progress } from "../schemas/stream.ts";

/** Ends jobs whose result did not arrive in time. */
export interface JobExpiry {
  expire(jobNumber: string): Promise<void>;
}

const EXPIRY_KEY = "expiry";

export function createJobExpiry(
  jobStore: Pick<JobStore, "update">,
  streams: Pick<StreamClient, "post" | "close">,
): JobExpiry {
  return {
    async expire(jobNumber) {
      // Update the job store first: it decides whether a result at the same moment is accepted or rejected.
      const state = await jobStore.update(
        jobNumber,
        { state: "expired", detail: "No result arrived in time" },
        SERVICE,
      );
      if (state !== "expired") return;
      const data = encodeJson({ state: "expired", rows_sent: 0, rows_estimated: null } satisfies Progress);
      await streams.post(jobNumber, { type: "status", data, final: true, key: EXPIRY_KEY });
      await streams.close(jobNumber, "expired");
    },
  };
}
