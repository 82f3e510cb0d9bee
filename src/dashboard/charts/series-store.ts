/** The points that charts show, metric by metric. What comes is added to what is there; a tick costs what is new in it. */

/** The points of one metric, each time once and in ascending order. */
export interface Track {
  /** In milliseconds of the epoch. */
  readonly times: number[];
  readonly values: number[];
  /** Where each value is the mean over a span: how long that is. The time is when it begins. */
  bucketMs: number | undefined;
}

/** A series as the service sends it. */
export interface SentSeries {
  metric: string;
  bucket_ms?: number | undefined;
  points: readonly { ts: string; value: number }[];
}

/** What came a little late, or out of order, is asked for once more. */
const OVERLAP_MS = 5_000;

const NOTHING: Track = { times: [], values: [], bucketMs: undefined };

export class SeriesStore {
  #tracks = new Map<string, Track>();

  track(metric: string): Track {
    return this.#tracks.get(metric) ?? NOTHING;
  }

  /** All that there is, in place of what was there. */
  replace(sent: readonly SentSeries[]): void {
    this.#tracks = new Map(
      sent.map(({ metric, bucket_ms, points }) => [
        metric,
        {
          times: points.map(({ ts }) => Date.parse(ts)),
          values: points.map(({ value }) => value),
          bucketMs: bucket_ms,
        },
      ]),
    );
  }

  /** From where on to ask for more; nothing where there is nothing yet. */
  sinceMs(nowMs: number): number | undefined {
    let newestMs = Number.NEGATIVE_INFINITY;
    let newestBucketMs = Number.NEGATIVE_INFINITY;
    for (const { times, bucketMs } of this.#tracks.values()) {
      const lastMs = times.at(-1);
      if (lastMs === undefined) continue;
      newestMs = Math.max(newestMs, lastMs);
      if (bucketMs !== undefined) newestBucketMs = Math.max(newestBucketMs, lastMs);
    }
    if (newestMs === Number.NEGATIVE_INFINITY) return undefined;
    // A time ahead of ours must not keep us from asking for what comes before it.
    const overlapMs = Math.min(newestMs, nowMs) - OVERLAP_MS;
    return newestBucketMs === Number.NEGATIVE_INFINITY ? overlapMs : Math.min(overlapMs, newestBucketMs - 1);
  }

  /** The single points that were heard of after `sinceMs`. */
  append(sent: readonly SentSeries[], sinceMs: number): void {
    for (const { metric, points } of sent) {
      const track = this.#tracks.get(metric);
      if (track === undefined) continue;
      if (track.bucketMs === undefined) for (const { ts, value } of points) put(track, Date.parse(ts), value);
      else appendMeans(track, track.bucketMs, points, sinceMs);
    }
  }

  /** Drops what is older. */
  trim(fromMs: number): void {
    for (const { times, values } of this.#tracks.values()) {
      const kept = indexFrom(times, fromMs);
      if (kept === 0) continue;
      times.splice(0, kept);
      values.splice(0, kept);
    }
  }
}

/** Goes on with the means where the service left off: the last one grows, then others follow in its steps. */
function appendMeans(track: Track, bucketMs: number, points: SentSeries["points"], sinceMs: number): void {
  const originMs = track.times.at(-1) ?? sinceMs + 1;
  const sums = new Map<number, { sum: number; count: number }>();
  for (const { ts, value } of points) {
    const startMs = originMs + Math.floor((Date.parse(ts) - originMs) / bucketMs) * bucketMs;
    // Of that one, not all points were asked for.
    if (startMs <= sinceMs) continue;
    const { sum, count } = sums.get(startMs) ?? { sum: 0, count: 0 };
    sums.set(startMs, { sum: sum + value, count: count + 1 });
  }
  for (const [startMs, { sum, count }] of sums) put(track, startMs, sum / count);
}

/** Nearly always behind the last one. */
function put({ times, values }: Track, timeMs: number, value: number): void {
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

/** Where the first time is that is not before this one. */
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
