/** Which samples are of the present, and which of a backlog: those are committed in inserts of their own. */

const WEEK_MS = 7 * 86_400_000;
/** A Monday, as the partitions of the store begin on one. */
const FIRST_MONDAY_MS = Date.UTC(1970, 0, 5);
/** Weeks whose samples go in one insert: as many partitions of each table. */
const WEEKS_TOGETHER = 4;

/** Whether a sample is so old that it goes with a backlog. What holds no values has no partition. */
export const isBacklog = ({ tsMs, metrics, texts }: Timed, nowMs: number): boolean =>
  tsMs < nowMs - WEEK_MS && !(isEmpty(metrics) && isEmpty(texts));

/** The lane of a sample: none for the present, else the number of the weeks that it goes together with. */
export const laneOf = (sample: Timed, nowMs: number): number | undefined =>
  isBacklog(sample, nowMs) ? Math.floor((sample.tsMs - FIRST_MONDAY_MS) / (WEEK_MS * WEEKS_TOGETHER)) : undefined;

interface Timed {
  tsMs: number;
  metrics: Record<string, number>;
  texts: Record<string, string>;
}

function isEmpty(fields: object): boolean {
  for (const _ in fields) return false;
  return true;
}
