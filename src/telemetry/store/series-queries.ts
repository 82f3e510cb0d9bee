import * as z from "zod";
import { byTime, mergePending, type PendingSeries, type Point, selectPoints } from "../pending-samples.ts";
import { column, finite, IN_MINUTES, IN_RANGE, type RunQuery } from "./clickhouse-query.ts";

/** Reads points for charts. A metric with too many points is averaged over buckets of equal length. */

export interface SeriesQuery {
  apId: string;
  /** Default: all metrics of the agent. */
  metrics?: readonly string[] | undefined;
  fromMs: number;
  toMs: number;
}

export interface Series<V = number> {
  metric: string;
  /** Length of the buckets, if the points are averaged. */
  bucketMs?: number;
  points: Point<V>[];
}

export const MAX_POINTS = 2_000;
const MINUTE_MS = 60_000;

const Columns = z.object({
  data: z.object({
    metric: column(z.string()),
    at: column(z.number()),
    /** How many points each value aggregates. */
    n: column(z.number()),
    value: column(z.number()),
  }),
});

/**
 * Returns the series of an agent, at most `MAX_POINTS` each.
 * @param runQuery must return the results in columns
 * @param allPending points that the store may not have yet, in the range and in the rest of its first and last minute. Units of time with
 * such points, a bucket or a minute, are computed from all their points, so that no point counts twice.
 */
export async function readSeries(
  runQuery: RunQuery,
  { apId, metrics, fromMs, toMs }: SeriesQuery,
  allPending: PendingSeries,
): Promise<Series[]> {
  const minBucketMs = Math.floor((toMs - fromMs) / MAX_POINTS) + 1;
  // Rounds buckets over half a minute up to whole minutes: the rollup has one row per minute, which is much faster to read.
  const isByMinute = minBucketMs > MINUTE_MS / 2;
  const bucketMs = isByMinute ? Math.ceil(minBucketMs / MINUTE_MS) * MINUTE_MS : minBucketMs;
  const buckets = new Buckets(fromMs, bucketMs, isByMinute);
  const isInRange = ({ tsMs }: Point): boolean => tsMs >= fromMs && tsMs <= toMs;
  const pending = isByMinute ? allPending : selectPoints(allPending, isInRange);
  const touched = [...new Set([...pending.values()].flat().map(({ tsMs }) => buckets.unitOf(tsMs)))];
  const run = async (query: string): Promise<CountedSeries[]> =>
    toSeries(
      await runQuery(Columns, query, {
        ap_id: apId,
        from: fromMs,
        to: toMs,
        bucket: bucketMs,
        max_points: MAX_POINTS,
        all: metrics === undefined,
        metrics: metrics ?? [],
        touched,
        touched_from: Math.min(...touched),
        touched_to: Math.max(...touched) + (isByMinute ? MINUTE_MS : bucketMs),
      }),
    );
  const [found, inTouched] = await Promise.all([
    run(isByMinute ? MINUTES_QUERY : POINTS_QUERY),
    touched.length === 0 ? [] : run(isByMinute ? TOUCHED_MINUTES_QUERY : TOUCHED_BUCKETS_QUERY),
  ]);
  const current = mergePending(toPoints(inTouched), pending);
  const stored = new Map(found.map((series) => [series.metric, series]));
  const all: Series[] = [];
  let hasSparse = false;
  for (const metric of new Set([...stored.keys(), ...current.keys()])) {
    const earlier = stored.get(metric) ?? { metric, count: 0, points: [] };
    const later = current.get(metric) ?? [];
    if (earlier.count + later.length > MAX_POINTS)
      all.push({ metric, bucketMs, points: buckets.average(earlier, later) });
    else if (isByMinute) hasSparse = true;
    else all.push({ metric, points: [...earlier.points.map(toPoint), ...later].toSorted(byTime) });
  }
  if (!hasSparse) return all;
  const isAveraged = new Set(all.map(({ metric }) => metric));
  const sparse = mergePending(toPoints(await run(SPARSE_QUERY)), selectPoints(pending, isInRange));
  for (const [metric, points] of sparse) if (!isAveraged.has(metric)) all.push({ metric, points: [...points] });
  return all;
}

/** A point, or the mean of several points. */
interface CountedPoint extends Point {
  n: number;
}

/** A series and the number of points that it aggregates. */
interface CountedSeries {
  metric: string;
  points: CountedPoint[];
  count: number;
}

/** Divides time into buckets, as the queries do. */
class Buckets {
  readonly #fromMs: number;
  readonly #bucketMs: number;
  readonly #isByMinute: boolean;

  constructor(fromMs: number, bucketMs: number, isByMinute: boolean) {
    this.#fromMs = fromMs;
    this.#bucketMs = bucketMs;
    this.#isByMinute = isByMinute;
  }

  /** Returns the start of the minute of a time, or of its bucket if buckets are shorter. */
  unitOf(tsMs: number): number {
    return this.#isByMinute ? Math.floor(tsMs / MINUTE_MS) * MINUTE_MS : this.#bucketOf(tsMs);
  }

  /** Averages points of the store, which may be means already, and further points. */
  average(earlier: CountedSeries, later: readonly Point[]): Point[] {
    const sums = new Map<number, CountedPoint>();
    const add = (tsMs: number, n: number, value: number): void => {
      const sum = sums.get(tsMs);
      if (sum === undefined) sums.set(tsMs, { tsMs, n, value });
      else [sum.n, sum.value] = [sum.n + n, sum.value + ((value - sum.value) * n) / (sum.n + n)];
    };
    for (const { tsMs, n, value } of earlier.points) add(this.#bucketOf(tsMs), n, value);
    for (const { tsMs, value } of later) add(this.#bucketOf(this.unitOf(tsMs)), 1, value);
    return [...sums.values()].map(toPoint).toSorted(byTime);
  }

  #bucketOf(tsMs: number): number {
    return this.#fromMs + Math.max(0, Math.floor((tsMs - this.#fromMs) / this.#bucketMs)) * this.#bucketMs;
  }
}

const toPoint = ({ tsMs, value }: CountedPoint): Point => ({ tsMs, value });

const toPoints = (found: readonly CountedSeries[]): PendingSeries =>
  new Map(found.map(({ metric, points }) => [metric, points.map(toPoint)]));

/** Converts columns, whose rows are sorted by metric, to one series for each metric. */
function toSeries({ data: { metric, at, n, value } }: z.output<typeof Columns>): CountedSeries[] {
  const all: CountedSeries[] = [];
  for (const [i, name] of metric.entries()) {
    let last = all.at(-1);
    if (last?.metric !== name) {
      last = { metric: name, points: [], count: 0 };
      all.push(last);
    }
    last.points.push({ tsMs: at[i] ?? 0, n: n[i] ?? 0, value: value[i] ?? 0 });
    last.count += n[i] ?? 0;
  }
  return all;
}

const OF_AGENT = "ap_id = {ap_id:String} AND ({all:Bool} OR metric IN {metrics:Array(String)})";
const BUCKET = "{from:Int64} + intDiv(ms - {from:Int64}, {bucket:Int64}) * {bucket:Int64}";
const IS_TOUCHED = "has({touched:Array(Int64)}, unit)";

/** Selects the points of each metric, or their means if there are too many. */
const POINTS_QUERY = `
  SELECT metric, if(points_of_metric > {max_points:UInt32}, unit, ms) AS at, count() AS n, ${finite("avg(value)")} AS value
  FROM (
    SELECT metric, toUnixTimestamp64Milli(ts) AS ms, ${BUCKET} AS unit, value, count() OVER (PARTITION BY metric) AS points_of_metric
    FROM points_v1 FINAL
    WHERE ${OF_AGENT} AND ${IN_RANGE} AND NOT ${IS_TOUCHED}
  )
  GROUP BY metric, points_of_metric, at
  ORDER BY metric, at`;

/** Selects the points of buckets or minutes with pending points. */
const touchedQuery = (unit: string, condition: string): string => `
  SELECT metric, toUnixTimestamp64Milli(ts) AS ms, ${unit} AS unit, ms AS at, 1 AS n, value
  FROM points_v1 FINAL
  WHERE ${OF_AGENT} AND ts >= fromUnixTimestamp64Milli({touched_from:Int64}) AND ts < fromUnixTimestamp64Milli({touched_to:Int64})
    AND ${IS_TOUCHED} ${condition}
  ORDER BY metric, at`;
const TOUCHED_BUCKETS_QUERY = touchedQuery(BUCKET, `AND ${IN_RANGE}`);
/** The rollup has whole minutes only, so these minutes are read as a whole, too. */
const TOUCHED_MINUTES_QUERY = touchedQuery("intDiv(ms, 60000) * 60000", "");

/**
 * Selects means over buckets of whole minutes, from the rollup. Includes metrics with few points: a window function that counts them first
 * takes as long as all the rest. Disables PREWHERE: the primary key already excludes almost all other rows, so reading in two steps is
 * not faster.
 */
const MINUTES_QUERY = `
  WITH toInt64(toUnixTimestamp(minute)) * 1000 AS ms, ms AS unit
  SELECT metric, ${BUCKET} AS at, sum(minutes.n) AS n, ${finite("sum(total) / n")} AS value
  FROM minutes_v1 AS minutes
  WHERE ${OF_AGENT} AND ${IN_MINUTES} AND NOT ${IS_TOUCHED}
  GROUP BY metric, at
  ORDER BY metric, at
  SETTINGS optimize_move_to_prewhere = 0`;

/** Selects the points of the metrics with few points. */
const SPARSE_QUERY = `
  SELECT metric, toUnixTimestamp64Milli(ts) AS at, 1 AS n, value
  FROM points_v1 FINAL
  WHERE ${OF_AGENT} AND ${IN_RANGE} AND metric GLOBAL IN (
    SELECT metric FROM minutes_v1 WHERE ${OF_AGENT} AND ${IN_MINUTES} GROUP BY metric HAVING sum(n) <= {max_points:UInt32}
  )
  ORDER BY metric, at`;
