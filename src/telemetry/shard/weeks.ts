import type { Sample } from "../samples.ts";

/** Separates current samples from backlogs, which are committed in separate inserts. */

const WEEK_MS = 7 * 86_400_000;
/** Weeks begin on Mondays, as the partitions of the store do. */
const FIRST_MONDAY_MS = Date.UTC(1970, 0, 5);
/** Weeks in one insert of a backlog. Each week is a partition of every table. */
const WEEKS_PER_LANE = 4;

/** Returns whether a sample is older than a week. Never for a sample without values, which belongs to no partition. */
const isBacklog = ({ tsMs, metrics, texts }: Sample, nowMs: number): boolean =>
  tsMs < nowMs - WEEK_MS && !(isEmpty(metrics) && isEmpty(texts));

/** Returns the lane of a sample: `undefined` for a current one, otherwise the number of its group of weeks. */
export const laneOf = (sample: Sample, nowMs: number): number | undefined =>
  isBacklog(sample, nowMs) ? Math.floor((sample.tsMs - FIRST_MONDAY_MS) / (WEEK_MS * WEEKS_PER_LANE)) : undefined;

function isEmpty(fields: object): boolean {
  for (const _ in fields) return false;
  return true;
}
