import { type SeriesRequest, series } from "../api/operations.ts";
import { usePoll } from "../lib/poll.ts";
import { type Line, withGaps } from "./gaps.ts";
import { SeriesStore } from "./series-store.ts";

/** Lines of charts about the past, which does not change. */

export interface PastLine extends Line {
  /** Whether no points are missing because the telemetry store does not respond. */
  isComplete: boolean;
}

const INTERVAL_MS = 3_600_000;
const RETRY_INTERVAL_MS = 5_000;

/** Loads a line, and again while points are missing. */
export const usePastLine = (
  load: (signal: AbortSignal) => Promise<PastLine | undefined>,
  dependencies: readonly unknown[],
) => usePoll(load, (line) => (line?.isComplete === false ? RETRY_INTERVAL_MS : INTERVAL_MS), dependencies);

/** Returns a metric of an access point. */
export async function lineOfAgent(
  { metric, ...request }: Omit<SeriesRequest, "metrics"> & { metric: string },
  signal: AbortSignal,
): Promise<PastLine> {
  const store = new SeriesStore();
  const response = await series({ ...request, metrics: [metric] }, signal);
  store.replace(response.series);
  return { ...withGaps(store.series(metric)), isComplete: response.complete_from === undefined };
}
