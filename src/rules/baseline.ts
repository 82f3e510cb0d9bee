/** The mean of a metric at the same hour of earlier days, in UTC. Live evaluation and backtests must agree on it. */

export const HOUR_MS = 3_600_000;
const HOURS_PER_DAY = 24;

/** The samples of one hour. */
export interface HourSum {
  n: number;
  total: number;
}

/** Returns the number of the hour of a time, from the epoch on. */
export const hourOf = (atMs: number): number => Math.floor(atMs / HOUR_MS);

/**
 * Returns the mean of all samples in the same hour of the `days` days before. Undefined if there are none.
 * @param sums of one agent and metric, by the number of the hour
 */
export function baselineOf(sums: ReadonlyMap<number, HourSum>, days: number, atMs: number): number | undefined {
  const hour = hourOf(atMs);
  let [n, total] = [0, 0];
  for (let day = 1; day <= days; day++) {
    const sum = sums.get(hour - day * HOURS_PER_DAY);
    if (sum === undefined) continue;
    n += sum.n;
    total += sum.total;
  }
  return n === 0 ? undefined : total / n;
}
