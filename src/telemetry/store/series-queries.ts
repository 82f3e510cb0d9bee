import * as z from "zod";
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
  points: { tsMs: number; value: V }[];
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
 */
export async function readSeries(runQuery: RunQuery, { apId, metrics, fromMs, toMs }: SeriesQuery): Promise<Series[]> {
  const minBucketMs = Math.floor((toMs - fromMs) / MAX_POINTS) + 1;
  // Rounds buckets over half a minute up to whole minutes: the rollup has one row per minute, which is much faster to read.
  const bucketMs = minBucketMs > MINUTE_MS / 2 ? Math.ceil(minBucketMs / MINUTE_MS) * MINUTE_MS : minBucketMs;
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
      }),
    );
  const averaged = ({ series }: CountedSeries): Series => ({ metric: series.metric, bucketMs, points: series.points });
  if (bucketMs < MINUTE_MS) {
    const found = await run(POINTS_QUERY);
    return found.map((counted) => (hasTooMany(counted) ? averaged(counted) : counted.series));
  }
  const found = await run(MINUTES_QUERY);
  const many = found.filter(hasTooMany).map(averaged);
  return many.length === found.length ? many : [...many, ...(await run(SPARSE_QUERY)).map(({ series }) => series)];
}

/** A series and the number of points that it aggregates. */
interface CountedSeries {
  series: Series;
  count: number;
}

const hasTooMany = ({ count }: CountedSeries): boolean => count > MAX_POINTS;

/** Converts columns, whose rows are sorted by metric, to one series for each metric. */
function toSeries({ data: { metric, at, n, value } }: z.output<typeof Columns>): CountedSeries[] {
  const all: CountedSeries[] = [];
  for (const [i, name] of metric.entries()) {
    let last = all.at(-1);
    if (last?.series.metric !== name) {
      last = { series: { metric: name, points: [] }, count: 0 };
      all.push(last);
    }
    last.series.points.push({ tsMs: at[i] ?? 0, value: value[i] ?? 0 });
    last.count += n[i] ?? 0;
  }
  return all;
}

const OF_AGENT = "ap_id = {ap_id:String} AND ({all:Bool} OR metric IN {metrics:Array(String)})";
const BUCKET = "{from:Int64} + intDiv(ms - {from:Int64}, {bucket:Int64}) * {bucket:Int64}";

/** Selects the points of each metric, or their means if there are too many. */
const POINTS_QUERY = `
  SELECT metric, if(points_of_metric > {max_points:UInt32}, ${BUCKET}, ms) AS at, count() AS n, ${finite("avg(value)")} AS value
  FROM (
    SELECT metric, toUnixTimestamp64Milli(ts) AS ms, value, count() OVER (PARTITION BY metric) AS points_of_metric
    FROM points_v1 FINAL
    WHERE ${OF_AGENT} AND ${IN_RANGE}
  )
  GROUP BY metric, points_of_metric, at
  ORDER BY metric, at`;

/**
 * Selects means over buckets of whole minutes, from the rollup. Includes metrics with few points: a window function that counts them first
 * takes as long as all the rest. Disables PREWHERE: the primary key already excludes almost all other rows, so reading in two steps is
 * not faster.
 */
const MINUTES_QUERY = `
  WITH toInt64(toUnixTimestamp(minute)) * 1000 AS ms
  SELECT metric, ${BUCKET} AS at, sum(minutes.n) AS n, ${finite("sum(total) / n")} AS value
  FROM minutes_v1 AS minutes
  WHERE ${OF_AGENT} AND ${IN_MINUTES}
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
