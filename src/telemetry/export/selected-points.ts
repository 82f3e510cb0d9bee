import { byTime, mergePending, type PendingSeries, type Point, pendingNumbers } from "../pending-samples.ts";
import type { ShardClient } from "../shard/shard-client.ts";
import type { ExportStore, PointRange, SeriesKey, SeriesListQuery } from "../store/export-queries.ts";

/**
 * Reads the points of many series: what the store has, and what the journals of the shards have not written to it yet. Reads the journals
 * first: a sample that moves in between is then in both, not in none.
 */
export interface SelectedPoints {
  /** The selected series that have points, and about how many. */
  series: CountedSeries[];
  /** Yields the points of some of the series, in the given order. A long series is in several parts, one after the other. */
  read<S extends CountedSeries>(series: readonly S[]): AsyncGenerator<{ series: S; points: Point[] }>;
}

export interface PointsQuery extends SeriesListQuery {
  isSelected: (series: SeriesKey) => boolean;
  /** Receives the size of each page of series that is read from the store. May throw to end the query. */
  onPage?: (size: number) => void;
}

export interface CountedSeries extends SeriesKey {
  count: number;
  /** Other metrics of the agent whose points belong to this series, too. Of several values with the same time, that of the first metric counts. */
  aliases?: readonly string[] | undefined;
}

/** Metrics of one series. They are in one query. */
export const MAX_JOINED_METRICS = 100;

/** Metrics and points in one query. */
const MAX_BATCH_METRICS = 200;
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
  query: PointsQuery,
): Promise<SelectedPoints> {
  const { apIds, metrics, fromMs, toMs, isSelected, onPage } = query;
  const isEmpty = apIds.length === 0 || metrics?.length === 0;
  const samples = isEmpty ? [] : await shards.pendingOfMany(apIds, fromMs, toMs);
  const pending = new Map<string, PendingSeries>();
  for (const [apId, own] of Map.groupBy(samples, (sample) => sample.apId)) pending.set(apId, pendingNumbers(own));
  const found = new Map<string, CountedSeries>();
  // Only the selected series of a page stay in memory.
  for await (const page of isEmpty ? [] : store.series(query)) {
    onPage?.(page.length);
    for (const one of page) if (isSelected(one)) found.set(keyOf(one), one);
  }
  for (const [apId, own] of pending) {
    for (const [metric, { length }] of own) {
      const known = found.get(keyOf({ apId, metric }));
      if (known === undefined && !isSelected({ apId, metric })) continue;
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
          for await (const points of readLong(store, keysOf(first), { fromMs, toMs }, pendingOf))
            yield { series: first, points };
          continue;
        }
        const found = await store.points(batch.flatMap(keysOf), { fromMs, toMs });
        const stored = new Map(found.map((one) => [keyOf(one), one.points]));
        for (const one of batch) {
          const points = join(keysOf(one).map((key) => merge(stored.get(keyOf(key)) ?? [], pendingOf(key))));
          if (points.length > 0) yield { series: one, points };
        }
      }
    },
  };
}

const keyOf = ({ apId, metric }: SeriesKey): string => `${apId} ${metric}`;
const keysOf = ({ apId, metric, aliases = [] }: CountedSeries): SeriesKey[] =>
  [metric, ...aliases].map((name) => ({ apId, metric: name }));

/** Divides series into batches of about equal numbers of points. A long series is a batch of its own. */
function* toBatches<S extends CountedSeries>(series: readonly S[]): Generator<S[]> {
  let batch: S[] = [];
  let [metrics, points, bytes] = [0, 0, 0];
  for (const one of series) {
    const names = [one.metric, ...(one.aliases ?? [])];
    const ownBytes = names.reduce((sum, { length }) => sum + length * MAX_UNIT_BYTES + NAME_BYTES, 0);
    const isFull =
      metrics + names.length > MAX_BATCH_METRICS ||
      points + one.count > MAX_BATCH_POINTS ||
      bytes + ownBytes > MAX_BATCH_BYTES;
    if (batch.length > 0 && isFull) {
      yield batch;
      batch = [];
      [metrics, points, bytes] = [0, 0, 0];
    }
    batch.push(one);
    metrics += names.length;
    points += one.count;
    bytes += ownBytes;
  }
  if (batch.length > 0) yield batch;
}

/** Yields the points of one series, in parts that fit into memory. */
async function* readLong(
  store: Pick<ExportStore, "points">,
  keys: readonly SeriesKey[],
  { fromMs, toMs }: PointRange,
  pendingOf: (key: SeriesKey) => readonly Point[],
): AsyncGenerator<Point[]> {
  const limit = Math.ceil(MAX_BATCH_POINTS / keys.length);
  for (let startMs = fromMs; ; ) {
    const parts: { key: SeriesKey; stored: Point[] }[] = [];
    for (const key of keys) {
      const [found] = await store.points([key], { fromMs: startMs, toMs }, limit);
      parts.push({ key, stored: found?.points ?? [] });
    }
    // Up to the earliest end of a part, there are no other points.
    const ends = parts.flatMap(({ stored }) => (stored.length < limit ? [] : stored.slice(-1))).map(({ tsMs }) => tsMs);
    const endMs = Math.min(toMs, ...ends);
    const isInPart = ({ tsMs }: Point): boolean => tsMs >= startMs && tsMs <= endMs;
    const points = join(
      parts.map(({ key, stored }) => merge(stored.filter(isInPart), pendingOf(key).filter(isInPart))),
    );
    if (points.length > 0) yield points;
    if (ends.length === 0) return;
    startMs = endMs + 1;
  }
}

/** Of two values with the same time, the stored one counts. */
function merge(stored: Point[], pending: readonly Point[]): Point[] {
  if (pending.length === 0) return stored;
  return [...(mergePending(new Map([["", stored]]), new Map([["", pending]])).get("") ?? [])];
}

/** Of several values with the same time, that of the first list counts. */
function join(lists: readonly Point[][]): Point[] {
  const [first = [], ...others] = lists.filter(({ length }) => length > 0);
  if (others.length === 0) return first;
  const byMs = new Map(first.map((point) => [point.tsMs, point]));
  for (const point of others.flat()) if (!byMs.has(point.tsMs)) byMs.set(point.tsMs, point);
  return [...byMs.values()].sort(byTime);
}
