import * as z from "zod";
import type { ClickHouse } from "../../storage/clickhouse.ts";
import type { Point } from "../pending-samples.ts";
import { toTexts } from "./aggregate-queries.ts";
import { createQuery, IN_MINUTES, IN_RANGE } from "./clickhouse-query.ts";
import { type DownloadFormat, streamDownload } from "./download-query.ts";

/** Reads the points of many agents and metrics, for other systems. */

export interface SeriesKey {
  apId: string;
  metric: string;
}

/** Stored names of one metric: some names, and the beginning of others. */
export interface StoredNames {
  exact: readonly string[];
  prefix: string;
}

export interface PointRange {
  fromMs: number;
  toMs: number;
}

export interface SeriesListQuery extends PointRange {
  apIds: readonly string[];
  /** Default: all metrics. */
  metrics?: readonly StoredNames[] | undefined;
}

export interface DownloadQuery extends PointRange {
  apIds: readonly string[];
  /** Default: all metrics. */
  metrics?: readonly string[] | undefined;
}

export interface ExportStore {
  /** Yields series with points in a range of time, and about how many, in pages that fit into memory. */
  series(query: SeriesListQuery): AsyncGenerator<(SeriesKey & { count: number })[]>;
  /**
   * Returns points in ascending order, the series in the order of agent and metric. Omits series without points.
   * @param limit of all points together
   */
  points(series: readonly SeriesKey[], range: PointRange, limit?: number): Promise<(SeriesKey & { points: Point[] })[]>;
  /** Returns the latest point of each metric since a time. */
  latest(apIds: readonly string[], range: PointRange, limit: number): Promise<(SeriesKey & Point)[]>;
  /** Returns about how many points there are. */
  count(query: DownloadQuery): Promise<number>;
  /** Returns all points in a file format, ordered by agent, metric and time. */
  download(query: DownloadQuery, format: DownloadFormat): Promise<ReadableStream<Uint8Array>>;
}

/** Names in one query. The server's limit for one parameter is 128 KiB. */
const MAX_PER_QUERY = 500;
/** Series in one result. */
const PAGE_SIZE = 50_000;
/** A condition for each name uses the primary key. With more names, one condition on all of them is faster. */
const MAX_NAME_CONDITIONS = 20;

const SeriesRows = z.array(z.object({ ap_id: z.string(), metric: z.string(), count: z.number() }));
const PointRows = z.array(
  z.object({ ap_id: z.string(), metric: z.string(), times: z.array(z.number()), values: z.array(z.number()) }),
);
const LatestRows = z.array(z.object({ ap_id: z.string(), metric: z.string(), at: z.number(), latest: z.number() }));
const Counts = z.tuple([z.object({ count: z.coerce.number() })]);

export function createExportStore(clickhouse: ClickHouse, pageSize = PAGE_SIZE): ExportStore {
  const rows = createQuery(clickhouse, "JSONEachRow");

  return {
    async *series({ apIds, metrics, fromMs, toMs }) {
      const names = metrics === undefined ? ANY_METRIC : metricCondition(metrics);
      for (let i = 0; i < apIds.length; i += MAX_PER_QUERY) {
        const chunk = apIds.slice(i, i + MAX_PER_QUERY);
        // No series comes before these names.
        let after: SeriesKey | undefined = { apId: "", metric: "" };
        while (after !== undefined) {
          const values = { ...names.values, ap_ids: chunk, from: fromMs, to: toMs, limit: pageSize };
          const found: z.output<typeof SeriesRows> = await rows(
            SeriesRows,
            `SELECT ap_id, metric, sum(n) AS count FROM minutes_v1
             WHERE ap_id IN {ap_ids:Array(String)} AND ${names.condition} AND ${IN_MINUTES}
               AND (ap_id, metric) > ({after_ap_id:String}, {after_metric:String})
             GROUP BY ap_id, metric
             ORDER BY ap_id, metric
             LIMIT {limit:UInt32}`,
            { ...values, after_ap_id: after.apId, after_metric: after.metric },
          );
          const page = found.map(({ ap_id, metric, count }) => ({ apId: ap_id, metric, count }));
          yield page;
          after = page.length < pageSize ? undefined : page.at(-1);
        }
      }
    },

    async points(series, { fromMs, toMs }, limit = 0xffff_ffff) {
      if (series.length === 0) return [];
      const found = await rows(PointRows, POINTS_QUERY, {
        ap_ids: series.map(({ apId }) => apId),
        metrics: series.map(({ metric }) => metric),
        from: fromMs,
        to: toMs,
        limit,
      });
      return found.map(({ ap_id, metric, times, values }) => ({
        apId: ap_id,
        metric,
        points: times.map((tsMs, i) => ({ tsMs, value: values[i] ?? 0 })),
      }));
    },

    async latest(apIds, { fromMs, toMs }, limit) {
      const found: (SeriesKey & Point)[] = [];
      for (let i = 0; i < apIds.length && found.length < limit; i += MAX_PER_QUERY) {
        const points = await rows(
          LatestRows,
          `SELECT ap_id, metric, toUnixTimestamp64Milli(max(ts)) AS at, argMax(value, ts) AS latest FROM points_v1
           WHERE ap_id IN {ap_ids:Array(String)} AND ${IN_RANGE}
           GROUP BY ap_id, metric
           LIMIT {limit:UInt32}`,
          { ap_ids: apIds.slice(i, i + MAX_PER_QUERY), from: fromMs, to: toMs, limit: limit - found.length },
        );
        for (const { ap_id, metric, at, latest } of points)
          found.push({ apId: ap_id, metric, tsMs: at, value: latest });
      }
      return found;
    },

    async count(query) {
      const { condition, values } = downloadCondition(query);
      const [{ count }] = await rows(
        Counts,
        `SELECT sum(n) AS count FROM minutes_v1 WHERE ${condition} AND ${IN_MINUTES}`,
        values,
      );
      return count;
    },

    async download(query, format) {
      const { condition, values } = downloadCondition(query);
      const select = `SELECT ts AS time, ap_id AS agent, ${format === "csv" ? SPREADSHEET_METRIC : "metric"}, value
        FROM points_v1 FINAL WHERE ${condition} AND ${IN_RANGE} ORDER BY ap_id, metric, ts
        SETTINGS prefer_column_name_to_alias = 1`;
      return await streamDownload(clickhouse, select, values, format);
    },
  };
}

/** Escapes the first character of formulas: agents choose the names of metrics, and a spreadsheet would execute them. */
const SPREADSHEET_METRIC = String.raw`if(match(metric, '^[=+@\t\r\n-]'), concat('\'', metric), metric) AS metric`;

/** Sorts first: an aggregate function takes the rows in their order. */
const POINTS_QUERY = `
  SELECT ap_id, metric, groupArray(ms) AS times, groupArray(value) AS values
  FROM (
    SELECT ap_id, metric, toUnixTimestamp64Milli(ts) AS ms, value
    FROM points_v1 FINAL
    WHERE ap_id IN {ap_ids:Array(String)} AND metric IN {metrics:Array(String)} AND ${IN_RANGE} AND (ap_id, metric) IN (
      SELECT pair.1, pair.2 FROM (SELECT arrayJoin(arrayZip({ap_ids:Array(String)}, {metrics:Array(String)})) AS pair)
    )
    ORDER BY ap_id, metric, ts
    LIMIT {limit:UInt32}
  )
  GROUP BY ap_id, metric
  ORDER BY ap_id, metric
  SETTINGS max_threads = 1`;

interface Condition {
  condition: string;
  values: Record<string, unknown>;
}

const ANY_METRIC: Condition = { condition: "true", values: {} };

function metricCondition(metrics: readonly StoredNames[]): Condition {
  if (metrics.length === 0) return { condition: "false", values: {} };
  const exact = metrics.flatMap((names) => names.exact);
  const prefixes = metrics.map(({ prefix }) => prefix);
  if (metrics.length > MAX_NAME_CONDITIONS) {
    const condition =
      "(metric IN {exact:Array(String)} OR arrayExists(prefix -> startsWith(metric, prefix), {prefixes:Array(String)}))";
    return { condition, values: { exact, prefixes } };
  }
  const conditions = prefixes.map((_, i) => `startsWith(metric, {prefix${i}:String})`);
  return {
    condition: `(metric IN {exact:Array(String)} OR ${conditions.join(" OR ")})`,
    values: { exact, ...Object.fromEntries(prefixes.map((prefix, i) => [`prefix${i}`, prefix])) },
  };
}

/** A list of few agents tells ClickHouse which shards of a cluster to query. */
function agentCondition(apIds: readonly string[]): { condition: string; values: object } {
  if (apIds.length === 0) return { condition: "false", values: {} };
  if (apIds.length <= MAX_PER_QUERY) return { condition: "ap_id IN {ap_ids:Array(String)}", values: { ap_ids: apIds } };
  const names = toTexts("names", apIds);
  return { condition: `ap_id IN (SELECT arrayJoin(${names.expression}))`, values: names.values };
}

function downloadCondition({ apIds, metrics, fromMs, toMs }: DownloadQuery): {
  condition: string;
  values: Record<string, string | number | readonly string[]>;
} {
  const agents = agentCondition(apIds);
  const ofMetrics = metrics === undefined ? "" : "AND metric IN {metrics:Array(String)}";
  return {
    condition: `${agents.condition} ${ofMetrics}`,
    values: { ...agents.values, ...(metrics !== undefined && { metrics }), from: fromMs, to: toMs },
  };
}
