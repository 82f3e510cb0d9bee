import type { Track } from "./series-store.ts";

/** Where nothing was heard for a while, the line of a chart is broken rather than drawn across. */

/** So many times the usual step is a gap. */
const GAP_STEPS = 3;
/** As many steps tell what is usual as well as all of them. */
const MAX_LOOKED_AT = 101;

export interface Line {
  times: readonly number[];
  /** Nothing is where the line breaks. */
  values: readonly (number | null)[];
  /** Points between two breaks, which no line would show. */
  lonely: readonly number[];
}

export function withGaps({ times, values, bucketMs }: Track): Line {
  const gapMs = GAP_STEPS * Math.max(usualStepMs(times), bucketMs ?? 0);
  const breaks = breaksIn(times, gapMs);
  if (breaks.length === 0) return { times, values, lonely: times.length === 1 ? [0] : [] };
  const line = { times: [] as number[], values: [] as (number | null)[], lonely: [] as number[] };
  let from = 0;
  for (const to of [...breaks, times.length]) {
    if (to - from === 1) line.lonely.push(line.times.length);
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

/** The indexes before which there is a gap. */
function breaksIn(times: readonly number[], gapMs: number): number[] {
  const found: number[] = [];
  for (let i = 1; i < times.length; i++) {
    if ((times[i] ?? 0) - (times[i - 1] ?? 0) > gapMs) found.push(i);
  }
  return found;
}

/** The median of the steps from one point to the next, of some all over the track. */
export function usualStepMs(times: readonly number[]): number {
  const every = Math.max(1, Math.floor((times.length - 1) / MAX_LOOKED_AT));
  const steps: number[] = [];
  for (let i = 1; i < times.length; i += every) steps.push((times[i] ?? 0) - (times[i - 1] ?? 0));
  steps.sort((a, b) => a - b);
  return steps[steps.length >>> 1] ?? 0;
}
