import { Unavailable } from "../lib/errors.ts";
import { toIsoTime } from "../lib/iso-time.ts";
import { mergePending, type PendingSeries, pendingNumbers, pendingTexts, selectPoints } from "./pending-samples.ts";
import type { LastSeen } from "./presence.ts";
import { countValues } from "./samples.ts";
import type { Pending, ShardClient } from "./shard/shard-client.ts";
import { MAX_POINTS, type Series, type SeriesQuery } from "./store/series-queries.ts";
import type { AgentSample, HistoryQuery, TelemetryStore } from "./store/telemetry-store.ts";

/**
 * Reads telemetry: what the store has, and what the journals of the shards have not written to it yet. A sample can be read as soon as its
 * report is acknowledged. Reads the journal first: a sample that moves in between is then in both, not in none.
 */
export interface Readings {
  /** Returns points in ascending order, at most `MAX_POINTS` of each metric. Omits metrics without points. */
  series(query: SeriesQuery): Promise<Reading<Series>>;
  /** Returns the newest texts in ascending order, at most `MAX_POINTS` of each field. */
  strings(query: Omit<SeriesQuery, "metrics">): Promise<Reading<Series<string>>>;
  /** Returns rows as JSON texts `{time, field, value}`, in the order of field and time. */
  history(query: HistoryQuery): Promise<string[]>;
  /** Returns the number of rows, numbers and texts. The result may be a little too high. */
  countHistory(query: Omit<SeriesQuery, "metrics">): Promise<number>;
  /** Returns when the service last received something, by agent, in milliseconds since the epoch. Default: all agents. */
  lastSeen(apIds?: readonly string[]): Promise<LastSeen>;
  /** Returns the names of the metrics that have points since a time. */
  metrics(apId: string, sinceMs: number): Promise<string[]>;
}

export interface Reading<S> {
  series: S[];
  /** If the store does not respond: points before this time are missing. */
  completeFromMs?: number | undefined;
}

const MINUTE_MS = 60_000;

export function createReadings(
  store: Pick<TelemetryStore, "series" | "strings" | "history" | "countHistory" | "availableLastSeen" | "metrics">,
  shards: Pick<ShardClient, "pending" | "received">,
  now: () => number = Date.now,
): Readings {
  /** Returns the pending samples of a range, and of the rest of its first and last minute: the rollup has whole minutes. */
  const pendingOf = async ({ apId, fromMs, toMs }: Omit<SeriesQuery, "metrics">): Promise<Pending> =>
    await shards.pending(apId, Math.floor(fromMs / MINUTE_MS) * MINUTE_MS, Math.ceil(toMs / MINUTE_MS) * MINUTE_MS);

  /** Throws `Unavailable` if there are too many: the history would have a gap. */
  const allPending = async ({ apId, fromMs, toMs }: Omit<SeriesQuery, "metrics">): Promise<AgentSample[]> => {
    const { samples, isTruncated } = await shards.pending(apId, fromMs, toMs);
    if (isTruncated)
      throw new Unavailable("telemetry store", new Error("The journal has too many samples for one read"));
    return samples;
  };

  /** Reads the store. If it does not respond, returns the pending points alone. */
  const readOrPending = async <V>(
    { fromMs, toMs }: Omit<SeriesQuery, "metrics">,
    { samples, isStoreDown, isTruncated }: Pending,
    pending: PendingSeries<V>,
    read: () => Promise<Series<V>[]>,
  ): Promise<Reading<Series<V>>> => {
    const stored = isStoreDown || isTruncated ? undefined : await unlessUnavailable(read());
    if (stored !== undefined && !(stored instanceof Unavailable)) return { series: stored };
    const completeFromMs = samples.reduce((oldest, { tsMs }) => Math.min(oldest, tsMs), now());
    const inRange = selectPoints(pending, ({ tsMs }) => tsMs >= fromMs && tsMs <= toMs);
    return {
      series: [...inRange].map(([metric, points]) => ({ metric, points: points.slice(-MAX_POINTS) })),
      completeFromMs,
    };
  };

  return {
    async series(query) {
      const pending = await pendingOf(query);
      const numbers = pendingNumbers(pending.samples, query.metrics);
      return await readOrPending(query, pending, numbers, () => store.series(query, numbers));
    },

    async strings(query) {
      const pending = await pendingOf(query);
      const texts = pendingTexts(pending.samples.filter(({ tsMs }) => tsMs >= query.fromMs && tsMs <= query.toMs));
      return await readOrPending(query, pending, texts, async () => {
        const stored = new Map((await store.strings(query)).map(({ metric, points }) => [metric, points]));
        const merged = mergePending(stored, texts, "pending");
        return [...merged].map(([metric, points]) => ({ metric, points: points.slice(-MAX_POINTS) }));
      });
    },

    async history(query) {
      const samples = await allPending(query);
      const rows = await store.history(query);
      const pending = query.of === "numbers" ? pendingNumbers(samples) : pendingTexts(samples);
      return pending.size === 0 ? rows : mergeRows(rows, toRows(pending), query);
    },

    async countHistory(query) {
      const samples = await allPending(query);
      return samples.reduce((sum, sample) => sum + countValues(sample), await store.countHistory(query));
    },

    async lastSeen(apIds) {
      const [received, stored] = await Promise.all([
        shards.received(apIds),
        unlessUnavailable(store.availableLastSeen(apIds)),
      ]);
      // Without the store, the shards know at least the agents that have reported since the outage began.
      if (stored instanceof Unavailable && !received.isComplete) throw stored;
      const { times, isComplete } =
        stored instanceof Unavailable ? { times: new Map<string, number>(), isComplete: false } : stored;
      for (const [apId, receivedMs] of received.times) times.set(apId, Math.max(receivedMs, times.get(apId) ?? 0));
      return { times, isComplete };
    },

    async metrics(apId, sinceMs) {
      const { samples } = await shards.pending(apId, sinceMs, Number.MAX_SAFE_INTEGER);
      const names = new Set(samples.flatMap(({ metrics }) => Object.keys(metrics)));
      const stored = await unlessUnavailable(store.metrics(apId, sinceMs));
      if (stored instanceof Unavailable && names.size === 0) throw stored;
      return [...new Set([...(stored instanceof Unavailable ? [] : stored), ...names])].sort();
    },
  };
}

/** Returns the error instead of throwing it, if it is an outage. */
const unlessUnavailable = <T>(read: Promise<T>): Promise<T | Unavailable> =>
  read.catch((error: unknown) => {
    if (error instanceof Unavailable) return error;
    throw error;
  });

interface Row {
  field: string;
  tsMs: number;
  text: string;
}

const toRows = (series: PendingSeries<number | string>): Row[] =>
  [...series].flatMap(([field, points]) =>
    points.map(({ tsMs, value }) => ({
      field,
      tsMs,
      text: JSON.stringify({ time: toIsoTime(tsMs), field, value }),
    })),
  );

/** Adds pending rows to a page of rows of the store. Both are in the order of field and time. */
function mergeRows(rows: readonly string[], pending: readonly Row[], { of, after, limit }: HistoryQuery): string[] {
  const stored = rows.map((text): Row => {
    const { time, field } = JSON.parse(text) as { time: string; field: string };
    return { field, tsMs: Date.parse(time), text };
  });
  const keyed = new Map(stored.map((row) => [keyOf(row), row]));
  // Rows after a full page of the store belong to a later page.
  const last = stored.length < limit ? undefined : stored.at(-1);
  for (const row of pending) {
    const isOnPage =
      (after === undefined || compare(row, after) > 0) && (last === undefined || compare(row, last) <= 0);
    // The first number counts, but the last text.
    if (isOnPage && (of === "texts" || !keyed.has(keyOf(row)))) keyed.set(keyOf(row), row);
  }
  return [...keyed.values()]
    .sort(compare)
    .slice(0, limit)
    .map(({ text }) => text);
}

const keyOf = ({ field, tsMs }: Row): string => `${tsMs} ${field}`;

function compare(a: { field: string; tsMs: number }, b: { field: string; tsMs: number }): number {
  return compareNames(a.field, b.field) || a.tsMs - b.tsMs;
}

/** Compares as ClickHouse does, by the bytes of UTF-8. This is the order of code points. */
function compareNames(a: string, b: string): number {
  const length = Math.min(a.length, b.length);
  for (let i = 0; i < length; i++) {
    const difference = rankOf(a.charCodeAt(i)) - rankOf(b.charCodeAt(i));
    if (difference !== 0) return difference;
  }
  return a.length - b.length;
}

/** Surrogates stand for code points beyond all others. */
const rankOf = (unit: number): number => (unit >= 0xd800 && unit < 0xe000 ? unit + 0x10000 : unit);
