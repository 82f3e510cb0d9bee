import type { ExplicitBuckets, ExponentialBuckets } from "./model.ts";

/** Estimates quantiles from the buckets of a histogram. */

/** The values in a bucket are above `lower`, and at most `upper`. */
interface Bucket {
  lower: number;
  upper: number;
  count: number;
}

interface Range {
  min?: number | undefined;
  max?: number | undefined;
}

/**
 * Returns the bucket of the quantile, and interpolates in it as Prometheus does: the values of a bucket are taken as evenly distributed.
 * Undefined if there are no values, or the estimate is not finite.
 */
export function estimateQuantile(
  buckets: readonly Bucket[],
  quantile: number,
  { min, max }: Range,
): number | undefined {
  const total = buckets.reduce((sum, { count }) => sum + count, 0);
  if (total === 0) return undefined;
  const rank = quantile * total;
  let before = 0;
  for (const { lower, upper, count } of buckets) {
    if (count > 0 && before + count >= rank) {
      const estimate = lower + (upper - lower) * Math.max((rank - before) / count, 0);
      const limited = Math.min(Math.max(estimate, min ?? estimate), max ?? Infinity);
      return Number.isFinite(limited) ? limited : undefined;
    }
    before += count;
  }
  return undefined;
}

/** Returns the buckets of a histogram. Undefined if their number does not fit the bounds, or the bounds do not increase. */
export function explicitBuckets({ counts, bounds }: ExplicitBuckets, { min, max }: Range): Bucket[] | undefined {
  if (counts.length === 0 && bounds.length === 0) return [];
  if (counts.length !== bounds.length + 1) return undefined;
  if (bounds.some((bound, i) => !(bound > (bounds[i - 1] ?? -Infinity)))) return undefined;
  const first = bounds[0] ?? min ?? 0;
  const last = bounds.at(-1) ?? max ?? first;
  return counts.map((count, i) => {
    // Without a minimum the values of the first bucket begin at 0, if they can. Without a maximum the last bucket has no width.
    const lower = bounds[i - 1] ?? Math.min(min ?? Math.min(0, first), first);
    return { lower, upper: bounds[i] ?? Math.max(max ?? last, last), count };
  });
}

/** Returns the buckets of an exponential histogram: bucket `i` ends at the base to the power of `i + 1`. */
export function exponentialBuckets(buckets: ExponentialBuckets): Bucket[] {
  const { scale, zeroCount, zeroThreshold, positive, negative } = buckets;
  const bound = (index: number): number => 2 ** (index * 2 ** -scale);
  const above = ({ offset, counts }: ExponentialBuckets["positive"]): Bucket[] =>
    counts.map((count, i) => ({ lower: bound(offset + i), upper: bound(offset + i + 1), count }));
  const below = above(negative).map(({ lower, upper, count }) => ({ lower: -upper, upper: -lower, count }));
  const zero = { lower: -zeroThreshold, upper: zeroThreshold, count: zeroCount };
  return [...below.reverse(), zero, ...above(positive)];
}
