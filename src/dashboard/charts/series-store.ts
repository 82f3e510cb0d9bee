/** The points of the charts, by metric. New points are appended in place, so that an update costs no more than its new points. */

/** The points of one metric, in ascending order and without duplicate times. */
export interface MetricSeries {
  /** Milliseconds since the epoch. */
  readonly times: number[];
  readonly values: number[];
  /** If each value is a mean: the length of its bucket. The time is the start of the bucket. */
  bucketMs: number | undefined;
}

/** A series in a response of the service. */
export interface ReceivedSeries {
  metric: string;
  bucket_ms?: number | undefined;
  points: readonly { ts: string; value: number }[];
}

/** Requests overlap by this much, for points that arrive late or out of order. */
const OVERLAP_MS = 5_000;

const EMPTY: MetricSeries = { times: [], values: [], bucketMs: undefined };

export class SeriesStore {
  #series = new Map<string, MetricSeries>();

  series(metric: string): MetricSeries {
    return this.#series.get(metric) ?? EMPTY;
  }

  /** Replaces all series. */
  replace(received: readonly ReceivedSeries[]): void {
    this.#series = new Map(
      received.map(({ metric, bucket_ms, points }) => [
        metric,
        {
          times: points.map(({ ts }) => Date.parse(ts)),
          values: points.map(({ value }) => value),
          bucketMs: bucket_ms,
        },
      ]),
    );
  }

  /** Returns the time from which to request new points, or undefined if the store is empty. */
  sinceMs(nowMs: number): number | undefined {
    let newestMs = Number.NEGATIVE_INFINITY;
    let newestBucketMs = Number.NEGATIVE_INFINITY;
    for (const { times, bucketMs } of this.#series.values()) {
      const lastMs = times.at(-1);
      if (lastMs === undefined) continue;
      newestMs = Math.max(newestMs, lastMs);
      if (bucketMs !== undefined) newestBucketMs = Math.max(newestBucketMs, lastMs);
    }
    if (newestMs === Number.NEGATIVE_INFINITY) return undefined;
    // A point with a time in the future must not hide points that arrive after it.
    const overlapMs = Math.min(newestMs, nowMs) - OVERLAP_MS;
    return newestBucketMs === Number.NEGATIVE_INFINITY ? overlapMs : Math.min(overlapMs, newestBucketMs - 1);
  }

  /** Adds points that the service received after `sinceMs`. Ignores metrics that the store does not have. */
  append(received: readonly ReceivedSeries[], sinceMs: number): void {
    for (const { metric, points } of received) {
      const series = this.#series.get(metric);
      if (series === undefined) continue;
      if (series.bucketMs === undefined) for (const { ts, value } of points) put(series, Date.parse(ts), value);
      else appendMeans(series, series.bucketMs, points, sinceMs);
    }
  }

  /** Drops older points. */
  trim(fromMs: number): void {
    for (const { times, values } of this.#series.values()) {
      const kept = indexFrom(times, fromMs);
      if (kept === 0) continue;
      times.splice(0, kept);
      values.splice(0, kept);
    }
  }
}

/** Continues the service's means: recomputes the last bucket, and appends further buckets of the same length. */
function appendMeans(series: MetricSeries, bucketMs: number, points: ReceivedSeries["points"], sinceMs: number): void {
  const originMs = series.times.at(-1) ?? sinceMs + 1;
  const sums = new Map<number, { sum: number; count: number }>();
  for (const { ts, value } of points) {
    const startMs = originMs + Math.floor((Date.parse(ts) - originMs) / bucketMs) * bucketMs;
    // Only some points of this bucket were requested.
    if (startMs <= sinceMs) continue;
    const { sum, count } = sums.get(startMs) ?? { sum: 0, count: 0 };
    sums.set(startMs, { sum: sum + value, count: count + 1 });
  }
  for (const [startMs, { sum, count }] of sums) put(series, startMs, sum / count);
}

/** Inserts or replaces one point. Nearly all points go to the end. */
function put({ times, values }: MetricSeries, timeMs: number, value: number): void {
  const lastMs = times.at(-1);
  const at = lastMs === undefined || timeMs > lastMs ? times.length : indexFrom(times, timeMs);
  if (times[at] === timeMs) {
    values[at] = value;
  } else if (at === times.length) {
    times.push(timeMs);
    values.push(value);
  } else {
    times.splice(at, 0, timeMs);
    values.splice(at, 0, value);
  }
}

/** Returns the index of the first time that is not before `timeMs`. */
export function indexFrom(times: readonly number[], timeMs: number): number {
  let low = 0;
  let high = times.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if ((times[middle] ?? 0) < timeMs) low = middle + 1;
    else high = middle;
  }
  return low;
}
