import { mergePending, type PendingSeries, type Point, pendingNumbers } from "../pending-samples.ts";
import type { ShardClient } from "../shard/shard-client.ts";
import type { ExportStore, PointRange, SeriesKey, SeriesListQuery } from "../store/export-queries.ts";

/**
 * Reads the points of many series: what the store has, and what the journals of the shards have not written to it yet. Reads the journals
 * first: a sample that moves in between is then in both, not in none.
 */
export interface SelectedPoints {
  /** The series that have points, and about how many. */
  series: CountedSeries[];
  /** Yields the points of some of the series, in the given order. A long series is in several parts, one after the other. */
  read<S extends SeriesKey & { count: number }>(series: readonly S[]): AsyncGenerator<{ series: S; points: Point[] }>;
}

export interface CountedSeries extends SeriesKey {
  count: number;
}

/** Series and points in one query. */
const MAX_BATCH_SERIES = 200;
const MAX_BATCH_POINTS = 50_000;
/** Bytes of the metrics in one query: they are one parameter, and the server's limit for one is 128 KiB. */
const MAX_BATCH_BYTES = 100_000;
/** UTF-8 needs at most 3 bytes for each unit of a JavaScript text. A character with a backslash needs 2. */
const MAX_UNIT_BYTES = 3;
/** Two quotes and a comma. */
const NAME_BYTES = 3;

const NO_SERIES: PendingSeries = new Map();

export async function selectPoints(
  store: Pick<ExportStore, "series" | "points">,
  shards: Pick<ShardClient, "pendingOfMany">,
  query: SeriesListQuery & { isPendingSelected: (metric: string) => boolean },
): Promise<SelectedPoints> {
  const { apIds, metrics, fromMs, toMs, isPendingSelected } = query;
  const isEmpty = apIds.length === 0 || metrics?.length === 0;
  const samples = isEmpty ? [] : await shards.pendingOfMany(apIds, fromMs, toMs);
  const pending = new Map<string, PendingSeries>();
  for (const [apId, own] of Map.groupBy(samples, (sample) => sample.apId)) pending.set(apId, pendingNumbers(own));
  const found = new Map<string, CountedSeries>();
  for (const one of isEmpty ? [] : await store.series(query)) found.set(keyOf(one), one);
  for (const [apId, own] of pending) {
    for (const [metric, { length }] of own) {
      if (!isPendingSelected(metric)) continue;
      const known = found.get(keyOf({ apId, metric }));
      found.set(keyOf({ apId, metric }), { apId, metric, count: (known?.count ?? 0) + length });
    }
  }
  const pendingOf = ({ apId, metric }: SeriesKey): readonly Point[] =>
    (pending.get(apId) ?? NO_SERIES).get(metric) ?? [];

  return {
    series: [...found.values()],

    async *read(series) {
      for (const batch of toBatches(series)) {
        const [first] = batch;
        if (first !== undefined && first.count > MAX_BATCH_POINTS) {
          for await (const points of readLong(store, first, { fromMs, toMs }, pendingOf(first)))
            yield { series: first, points };
          continue;
        }
        const stored = new Map((await store.points(batch, { fromMs, toMs })).map((one) => [keyOf(one), one.points]));
        for (const one of batch) {
          const points = merge(stored.get(keyOf(one)) ?? [], pendingOf(one));
          if (points.length > 0) yield { series: one, points };
        }
      }
    },
  };
}

const keyOf = ({ apId, metric }: SeriesKey): string => `${apId} ${metric}`;

/** Divides series into batches of about equal numbers of points. A long series is a batch of its own. */
function* toBatches<S extends CountedSeries>(series: readonly S[]): Generator<S[]> {
  let batch: S[] = [];
  let [points, bytes] = [0, 0];
  for (const one of series) {
    const ownBytes = one.metric.length * MAX_UNIT_BYTES + NAME_BYTES;
    const isFull =
      batch.length === MAX_BATCH_SERIES || points + one.count > MAX_BATCH_POINTS || bytes + ownBytes > MAX_BATCH_BYTES;
    if (batch.length > 0 && isFull) {
      yield batch;
      [batch, points, bytes] = [[], 0, 0];
    }
    batch.push(one);
    points += one.count;
    bytes += ownBytes;
  }
  if (batch.length > 0) yield batch;
}

/** Yields the points of one series, in parts that fit into memory. */
async function* readLong(
  store: Pick<ExportStore, "points">,
  series: SeriesKey,
  { fromMs, toMs }: PointRange,
  pending: readonly Point[],
): AsyncGenerator<Point[]> {
  for (let startMs = fromMs; ; ) {
    const [found] = await store.points([series], { fromMs: startMs, toMs }, MAX_BATCH_POINTS);
    const stored = found?.points ?? [];
    const last = stored.length < MAX_BATCH_POINTS ? undefined : stored.at(-1);
    const endMs = last?.tsMs ?? toMs;
    const inPart = pending.filter(({ tsMs }) => tsMs >= startMs && tsMs <= endMs);
    const points = merge(stored, inPart);
    if (points.length > 0) yield points;
    if (last === undefined) return;
    startMs = endMs + 1;
  }
}

/** Of two values with the same time, the stored one counts. */
function merge(stored: Point[], pending: readonly Point[]): Point[] {
  if (pending.length === 0) return stored;
  return [...(mergePending(new Map([["", stored]]), new Map([["", pending]])).get("") ?? [])];
}
