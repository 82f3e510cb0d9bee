import * as z from "zod";
import { column, IN_MINUTES, IN_RANGE, type RunQuery } from "./clickhouse-query.ts";

/** Points for charts: as they are where they are few, and otherwise means over equal spans. */

export interface SeriesQuery {
  apId: string;
  /** All of the agent's, where absent. */
  metrics?: readonly string[] | undefined;
  fromMs: number;
  toMs: number;
}

export interface Series<V = number> {
  metric: string;
  /** Where there were too many points: how long each of the equal spans is over which they are averaged. */
  bucketMs?: number;
  points: { tsMs: number; value: V }[];
}

export const MAX_POINTS = 2_000;
const MINUTE_MS = 60_000;

const Columns = z.object({
  data: z.object({
    metric: column(z.string()),
    at: column(z.number()),
    /** How many points each value stands for. */
    n: column(z.number()),
    value: column(z.number()),
  }),
});

/** @param read in columns */
export async function readSeries(read: RunQuery, { apId, metrics, fromMs, toMs }: SeriesQuery): Promise<Series[]> {
  const spanMs = Math.floor((toMs - fromMs) / MAX_POINTS) + 1;
  // From half a minute on, in whole ones: their means are there already, and a day of them is a sixtieth of its points.
  const bucketMs = spanMs > MINUTE_MS / 2 ? Math.ceil(spanMs / MINUTE_MS) * MINUTE_MS : spanMs;
  const ask = async (query: string): Promise<Counted[]> =>
    grouped(
      await read(Columns, query, {
        ap_id: apId,
        from: fromMs,
        to: toMs,
        bucket: bucketMs,
        max_points: MAX_POINTS,
        all: metrics === undefined,
        metrics: metrics ?? [],
      }),
    );
  const averaged = ({ series }: Counted): Series => ({ metric: series.metric, bucketMs, points: series.points });
  if (bucketMs < MINUTE_MS) {
    const found = await ask(SERIES_OF_POINTS);
    return found.map((counted) => (isMany(counted) ? averaged(counted) : counted.series));
  }
  const found = await ask(SERIES_OF_MINUTES);
  const many = found.filter(isMany).map(averaged);
  return many.length === found.length ? many : [...many, ...(await ask(SPARSE_SERIES)).map(({ series }) => series)];
}

/** A series, and how many points it is made of. */
interface Counted {
  series: Series;
  count: number;
}

const isMany = ({ count }: Counted): boolean => count > MAX_POINTS;

/** Columns whose rows come metric by metric, as one series each. */
function grouped({ data: { metric, at, n, value } }: z.output<typeof Columns>): Counted[] {
  const all: Counted[] = [];
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
/** Very large numbers may add up to infinity, which JSON has no word for. */
const mean = (expression: string): string =>
  `least(greatest(${expression}, -${Number.MAX_VALUE}), ${Number.MAX_VALUE})`;

/** The points themselves, or their means where they are too many. */
const SERIES_OF_POINTS = `
  SELECT metric, if(of_metric > {max_points:UInt32}, ${BUCKET}, ms) AS at, count() AS n, ${mean("avg(value)")} AS value
  FROM (
    SELECT metric, toUnixTimestamp64Milli(ts) AS ms, value, count() OVER (PARTITION BY metric) AS of_metric
    FROM points_v1 FINAL
    WHERE ${OF_AGENT} AND ${IN_RANGE}
  )
  GROUP BY metric, of_metric, at
  ORDER BY metric, at`;

/**
 * The same over a range so long that each mean is over minutes. Also of metrics with few points: to count those first, in a window
 * over all minutes, takes as long as everything else. The key leaves hardly a row that is not wanted: to read it in two steps, first
 * what the condition is about and then the rest, does not pay.
 */
const SERIES_OF_MINUTES = `
  WITH toInt64(toUnixTimestamp(minute)) * 1000 AS ms
  SELECT metric, ${BUCKET} AS at, sum(minutes.n) AS n, ${mean("sum(total) / n")} AS value
  FROM minutes_v1 AS minutes
  WHERE ${OF_AGENT} AND ${IN_MINUTES}
  GROUP BY metric, at
  ORDER BY metric, at
  SETTINGS optimize_move_to_prewhere = 0`;

/** The points of those metrics that have few. */
const SPARSE_SERIES = `
  SELECT metric, toUnixTimestamp64Milli(ts) AS at, 1 AS n, value
  FROM points_v1 FINAL
  WHERE ${OF_AGENT} AND ${IN_RANGE} AND metric GLOBAL IN (
    SELECT metric FROM minutes_v1 WHERE ${OF_AGENT} AND ${IN_MINUTES} GROUP BY metric HAVING sum(n) <= {max_points:UInt32}
  )
  ORDER BY metric, at`;
