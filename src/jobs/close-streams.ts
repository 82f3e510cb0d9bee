import { describeError, log } from "../log.ts";
import type { Streams } from "./streams.ts";

/** Of all that the platform lets one request call. The streams of other jobs end when they next report to the index. */
const MAX_CLOSED = 500;
const CLOSED_AT_ONCE = 8;

/** Closes the streams of jobs that were cancelled in the index. Best effort: does not fail. */
export async function closeStreams(streams: Pick<Streams, "close">, jobNumbers: readonly string[]): Promise<void> {
  const waiting = jobNumbers.slice(0, MAX_CLOSED);
  let failures = 0;
  const lane = async (): Promise<void> => {
    for (let jobNumber = waiting.pop(); jobNumber !== undefined; jobNumber = waiting.pop()) {
      await streams.close(jobNumber, "cancelled").catch((error: unknown) => {
        if (failures++ === 0) log.warn("stream of a deleted account not closed", { error: describeError(error) });
      });
    }
  };
  await Promise.all(Array.from({ length: CLOSED_AT_ONCE }, lane));
}
