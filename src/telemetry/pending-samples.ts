import type { Sample } from "./samples.ts";

/**
 * Combines samples of an agent that are still in the journal of its shard with those of the store. A sample that is on its way to the
 * store may be in both.
 */

export interface Point<V = number> {
  tsMs: number;
  value: V;
}

/** Metric → points. */
export type PendingSeries<V = number> = ReadonlyMap<string, readonly Point<V>[]>;

export const byTime = (a: Point<unknown>, b: Point<unknown>): number => a.tsMs - b.tsMs;

/** Returns the numbers of samples by metric. Of several values with the same key, the first one counts. */
export function pendingNumbers(samples: readonly Sample[], metrics?: readonly string[]): PendingSeries {
  const wanted = metrics && new Set(metrics);
  return collect(
    samples,
    (sample) => Object.entries(sample.metrics).filter(([metric]) => wanted?.has(metric) ?? true),
    "first",
  );
}

/** Returns the texts of samples by field. Of several values with the same key, the last one counts. */
export const pendingTexts = (samples: readonly Sample[]): PendingSeries<string> =>
  collect(samples, ({ texts }) => Object.entries(texts), "last");

/** Returns the points that meet a condition. Omits metrics without points. */
export const selectPoints = <V>(series: PendingSeries<V>, condition: (point: Point<V>) => boolean): PendingSeries<V> =>
  new Map(
    [...series]
      .map(([metric, points]) => [metric, points.filter(condition)] as const)
      .filter(([, { length }]) => length > 0),
  );

/** Adds pending points to those of the store. Both may have a point: `winner` says whose value counts. */
export function mergePending<V>(
  stored: PendingSeries<V>,
  pending: PendingSeries<V>,
  winner: "stored" | "pending" = "stored",
): PendingSeries<V> {
  const merged = new Map(stored);
  for (const [metric, points] of pending) {
    const byMs = new Map<number, V>();
    const [first, second] = winner === "stored" ? [points, stored.get(metric)] : [stored.get(metric), points];
    for (const { tsMs, value } of first ?? []) byMs.set(tsMs, value);
    for (const { tsMs, value } of second ?? []) byMs.set(tsMs, value);
    merged.set(metric, [...byMs].map(([tsMs, value]) => ({ tsMs, value })).sort(byTime));
  }
  return merged;
}

function collect<V>(
  samples: readonly Sample[],
  entriesOf: (sample: Sample) => [string, V][],
  winner: "first" | "last",
): PendingSeries<V> {
  const series = new Map<string, Map<number, V>>();
  for (const sample of samples) {
    for (const [name, value] of entriesOf(sample)) {
      const points = series.get(name) ?? new Map<number, V>();
      if (winner === "last" || !points.has(sample.tsMs)) points.set(sample.tsMs, value);
      series.set(name, points);
    }
  }
  return new Map(
    [...series].map(([name, points]) => [name, [...points].map(([tsMs, value]) => ({ tsMs, value })).sort(byTime)]),
  );
}
