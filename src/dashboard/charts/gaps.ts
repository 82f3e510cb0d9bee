import type { MetricSeries } from "./series-store.ts";

/** Breaks the line of a chart where points are missing, instead of connecting the points on both sides. */

/** A step longer than this many usual steps is a gap. */
const GAP_STEPS = 3;
/** A sample of this size suffices for the median. */
const MAX_SAMPLED_STEPS = 101;

export interface Line {
  times: readonly number[];
  /** Null breaks the line. */
  values: readonly (number | null)[];
  /** The indexes of points between two breaks, which a line does not show. */
  isolated: readonly number[];
}

/** Returns a series as a line with breaks at its gaps. Copies the arrays only if there are gaps. */
export function withGaps({ times, values, bucketMs }: MetricSeries): Line {
  const gapMs = GAP_STEPS * Math.max(usualStepMs(times), bucketMs ?? 0);
  const breaks = breaksIn(times, gapMs);
  if (breaks.length === 0) return { times, values, isolated: times.length === 1 ? [0] : [] };
  const line = { times: [] as number[], values: [] as (number | null)[], isolated: [] as number[] };
  let from = 0;
  for (const to of [...breaks, times.length]) {
    if (to - from === 1) line.isolated.push(line.times.length);
    for (let i = from; i < to; i++) {
      line.times.push(times[i] ?? 0);
      line.values.push(values[i] ?? null);
    }
    const next = times[to];
    if (next !== undefined) {
      line.times.push(((times[to - 1] ?? next) + next) / 2);
      line.values.push(null);
    }
    from = to;
  }
  return line;
}

/** Returns the indexes of the points that follow a gap. */
function breaksIn(times: readonly number[], gapMs: number): number[] {
  const found: number[] = [];
  for (let i = 1; i < times.length; i++) {
    if ((times[i] ?? 0) - (times[i - 1] ?? 0) > gapMs) found.push(i);
  }
  return found;
}

/** Returns the median of the steps between neighbouring points, sampled over the whole series. */
export function usualStepMs(times: readonly number[]): number {
  const stride = Math.max(1, Math.floor((times.length - 1) / MAX_SAMPLED_STEPS));
  const steps: number[] = [];
  for (let i = 1; i < times.length; i += stride) steps.push((times[i] ?? 0) - (times[i - 1] ?? 0));
  steps.sort((a, b) => a - b);
  return steps[steps.length >>> 1] ?? 0;
}
