import * as z from "zod";
import type { ClickHouse } from "./clickhouse.ts";
import type { Sample } from "./samples.ts";

/** The telemetry in ClickHouse: what goes in, and every question that is asked of it. */

export interface AgentSample extends Sample {
  apId: string;
}

export interface SeriesQuery {
  apId: string;
  /** All of the agent's, where absent. */
  metrics?: readonly string[] | undefined;
  fromMs: number;
  toMs: number;
}

export interface HistoryQuery extends Omit<SeriesQuery, "metrics"> {
  of: "numbers" | "texts";
  /** Only what comes after this row. */
  after?: { field: string; tsMs: number } | undefined;
  limit: number;
}

export interface Series<V = number> {
  metric: string;
  /** Where there were too many points: how long each of the equal spans is over which they are averaged. */
  bucketMs?: number;
  points: { tsMs: number; value: V }[];
}

export interface TelemetryStore {
  /** Commits samples. The same batch under the same token, sent again, changes nothing. */
  insert(samples: readonly AgentSample[], token: string): Promise<void>;
  /** Which values of these samples are there already. */
  stored(samples: readonly AgentSample[]): Promise<{ apId: string; tsMs: number; metric: string }[]>;
  /** Points in ascending order, at most `MAX_POINTS` of each metric; only metrics that have any. */
  series(query: SeriesQuery): Promise<Series[]>;
  /** Every point since then, one by one; nothing where they are more than `max`. */
  recent(
    apId: string,
    sinceMs: number,
    max: number,
  ): Promise<{ metric: string; tsMs: number; value: number }[] | undefined>;
  texts(query: Omit<SeriesQuery, "metrics">): Promise<Series<string>[]>;
  /** Rows of an agent's past, one JSON text `{time, field, value}` each: field by field, ascending in time within each. */
  history(query: HistoryQuery): Promise<string[]>;
  /** How many rows there are, numbers and texts; of numbers those of whole minutes. */
  countHistory(query: Omit<SeriesQuery, "metrics">): Promise<number>;
  /** When each of the agents, or of all, was last heard of, in milliseconds of the epoch. */
  lastSeen(apIds?: readonly string[]): Promise<Map<string, number>>;
  /** Names of the metrics heard of since then. */
  metrics(apId: string, sinceMs: number): Promise<string[]>;
}

export const MAX_POINTS = 2_000;
const MINUTE_MS = 60_000;
/** Questions travel in the address of the request, which has its limits. */
const MAX_ASKED = 500;

const Points = z.array(
  z.object({ metric: z.string(), n: z.coerce.number(), at: z.coerce.number(), value: z.number() }),
);
const RawPoints = z.array(z.object({ metric: z.string(), at: z.coerce.number(), value: z.number() }));
const Texts = z.array(z.object({ metric: z.string(), at: z.coerce.number(), value: z.string() }));
const Stored = z.array(z.object({ ap_id: z.string(), at: z.coerce.number(), metric: z.string() }));
const LastSeen = z.tuple([z.object({ ap_ids: z.array(z.string()), times: z.array(z.coerce.number()) })]);
const Counted = z.array(z.object({ count: z.coerce.number() }));
const Names = z.array(z.object({ metric: z.string() }));

export function createTelemetryStore(clickhouse: ClickHouse): TelemetryStore {
  const rows = async <S extends z.ZodType>(
    schema: S,
    query: string,
    query_params: Record<string, unknown>,
  ): Promise<z.output<S>> =>
    schema.parse(
      await clickhouse.reach(async (client, abort_signal) => {
        const answer = await client.query({
          query,
          query_params,
          abort_signal,
          format: "JSONEachRow",
          clickhouse_settings: READING,
        });
        return await answer.json();
      }),
    );

  return {
    async insert(samples, token) {
      await clickhouse.reach((client, abort_signal) =>
        client.insert({
          table: "samples_v1",
          format: "JSONEachRow",
          values: samples.map(({ apId, tsMs, metrics, texts }) => ({ ap_id: apId, ts: tsMs, metrics, texts })),
          abort_signal,
          clickhouse_settings: {
            insert_deduplication_token: token,
            deduplicate_blocks_in_dependent_materialized_views: 1,
            // The quick way of reading a number is off by a bit now and then.
            precise_float_parsing: 1,
            // A backlog may reach back over many days.
            max_partitions_per_insert_block: "0",
            // Every row of a batch is another one already; what belongs together with earlier ones is merged later in any case.
            optimize_on_insert: 0,
            // On a cluster: committed means committed on the agent's shard.
            distributed_foreground_insert: 1,
          },
        }),
      );
    },

    async stored(samples) {
      const found: { apId: string; tsMs: number; metric: string }[] = [];
      for (let i = 0; i < samples.length; i += MAX_ASKED) {
        const asked = samples.slice(i, i + MAX_ASKED);
        const times = [...new Set(asked.map(({ tsMs }) => tsMs))];
        const values = await rows(
          Stored,
          `SELECT DISTINCT ap_id, toUnixTimestamp64Milli(ts) AS at, metric
           FROM points_v1
           WHERE ap_id IN {ap_ids:Array(String)} AND toUnixTimestamp64Milli(ts) IN {times:Array(Int64)}
             AND ts >= fromUnixTimestamp64Milli({from:Int64}) AND ts <= fromUnixTimestamp64Milli({to:Int64})`,
          {
            ap_ids: [...new Set(asked.map(({ apId }) => apId))],
            times,
            from: Math.min(...times),
            to: Math.max(...times),
          },
        );
        for (const { ap_id, at, metric } of values) found.push({ apId: ap_id, tsMs: at, metric });
      }
      return found;
    },

    async series({ apId, metrics, fromMs, toMs }) {
      const spanMs = Math.floor((toMs - fromMs) / MAX_POINTS) + 1;
      // From half a minute on, in whole ones: their means are there already, and a day of them is a sixtieth of its points.
      const bucketMs = spanMs > MINUTE_MS / 2 ? Math.ceil(spanMs / MINUTE_MS) * MINUTE_MS : spanMs;
      const params = {
        ap_id: apId,
        from: fromMs,
        to: toMs,
        bucket: bucketMs,
        max_points: MAX_POINTS,
        all: metrics === undefined,
        metrics: metrics ?? [],
      };
      const isMany = ({ n }: { n: number }) => n > MAX_POINTS;
      if (bucketMs < MINUTE_MS) {
        const found = grouped(await rows(Points, SERIES_OF_POINTS, params));
        return found.map((series) => (isMany(series) ? { ...series, bucketMs } : series));
      }
      const found = grouped(await rows(Points, SERIES_OF_MINUTES, params));
      const many = found.filter(isMany).map((series) => ({ ...series, bucketMs }));
      return many.length === found.length ? many : [...many, ...grouped(await rows(Points, SPARSE_SERIES, params))];
    },

    async recent(apId, sinceMs, max) {
      const found = await rows(
        RawPoints,
        `SELECT metric, toUnixTimestamp64Milli(ts) AS at, value
         FROM points_v1 FINAL
         WHERE ap_id = {ap_id:String} AND ts >= fromUnixTimestamp64Milli({since:Int64})
         ORDER BY metric, at
         LIMIT {limit:UInt32}`,
        { ap_id: apId, since: sinceMs, limit: max + 1 },
      );
      return found.length > max ? undefined : found.map(({ metric, at, value }) => ({ metric, tsMs: at, value }));
    },

    async texts({ apId, fromMs, toMs }) {
      const found = await rows(
        Texts,
        `SELECT field AS metric, toUnixTimestamp64Milli(ts) AS at, value
         FROM texts_v1 FINAL
         WHERE ap_id = {ap_id:String}
           AND ts >= fromUnixTimestamp64Milli({from:Int64}) AND ts <= fromUnixTimestamp64Milli({to:Int64})
         ORDER BY metric, at DESC
         LIMIT {max_points:UInt32} BY metric`,
        { ap_id: apId, from: fromMs, to: toMs, max_points: MAX_POINTS },
      );
      return grouped(found.reverse().map((row) => ({ ...row, n: 0 }))).toReversed();
    },

    async history({ apId, fromMs, toMs, of, after, limit }) {
      const [table, field] = of === "numbers" ? ["points_v1", "metric"] : ["texts_v1", "field"];
      const text = await clickhouse.reach(async (client, abort_signal) => {
        const answer = await client.query({
          query: `SELECT ts AS time, ${field} AS field, value
                  FROM ${table} FINAL
                  WHERE ap_id = {ap_id:String} AND ${IN_RANGE}
                    AND ({first:Bool} OR ${field} > {field:String}
                      OR (${field} = {field:String} AND ts > fromUnixTimestamp64Milli({at:Int64})))
                  ORDER BY ${field}, ts
                  LIMIT {limit:UInt32}`,
          query_params: {
            ap_id: apId,
            from: fromMs,
            to: toMs,
            first: after === undefined,
            field: after?.field ?? "",
            at: after?.tsMs ?? 0,
            limit,
          },
          abort_signal,
          format: "JSONEachRow",
          // As the rows are to be sent: nobody reads them on the way.
          clickhouse_settings: { ...READING, ...IN_SMALL_BLOCKS, date_time_output_format: "iso" },
        });
        return await answer.text();
      });
      return text.split("\n").filter((line) => line !== "");
    },

    async countHistory({ apId, fromMs, toMs }) {
      const [counted] = await rows(
        Counted,
        `SELECT (SELECT sum(n) FROM minutes_v1 WHERE ap_id = {ap_id:String} AND ${IN_MINUTES})
              + (SELECT count() FROM texts_v1 WHERE ap_id = {ap_id:String} AND ${IN_RANGE}) AS count`,
        { ap_id: apId, from: fromMs, to: toMs },
      );
      return counted?.count ?? 0;
    },

    async lastSeen(apIds) {
      // All in one row: there may be many agents, and an overview asks often.
      const [{ ap_ids, times }] = await rows(
        LastSeen,
        `SELECT groupArray(ap_id) AS ap_ids, groupArray(at) AS times
         FROM (
           SELECT ap_id, toUnixTimestamp64Milli(max(last_seen)) AS at FROM agents_v1
           WHERE {all:Bool} OR ap_id IN {ap_ids:Array(String)}
           GROUP BY ap_id
         )`,
        { all: apIds === undefined, ap_ids: apIds ?? [] },
      );
      return new Map(ap_ids.map((apId, i) => [apId, times[i] ?? 0]));
    },

    async metrics(apId, sinceMs) {
      const found = await rows(
        Names,
        // By the minutes, but for the one in which the time lies.
        `SELECT DISTINCT metric FROM (
           SELECT metric FROM minutes_v1
           WHERE ap_id = {ap_id:String} AND minute >= fromUnixTimestamp64Milli({since:Int64})
           UNION ALL
           SELECT metric FROM points_v1
           WHERE ap_id = {ap_id:String} AND ts >= fromUnixTimestamp64Milli({since:Int64})
             AND ts < fromUnixTimestamp64Milli({since:Int64}) + INTERVAL 1 MINUTE
         )
         ORDER BY metric`,
        { ap_id: apId, since: sinceMs },
      );
      return found.map(({ metric }) => metric);
    },
  };
}

/** A read whose asker has gone is cut off. */
export const READING = {
  readonly: "2",
  cancel_http_readonly_queries_on_client_close: 1,
  // All copies of a value lie in the partition of its day.
  do_not_merge_across_partitions_select_final: 1,
  // On a cluster: only the agent's shard is asked.
  optimize_skip_unused_shards: 1,
} as const;

/**
 * For reading a little in the order of the table. One block is read of each part before the first row is known, and a long past has
 * many parts: with blocks of the usual size that is a hundred times what is asked for.
 */
const IN_SMALL_BLOCKS = { max_block_size: "8192" } as const;

const OF_AGENT = "ap_id = {ap_id:String} AND ({all:Bool} OR metric IN {metrics:Array(String)})";
const IN_RANGE = "ts >= fromUnixTimestamp64Milli({from:Int64}) AND ts <= fromUnixTimestamp64Milli({to:Int64})";
const IN_MINUTES =
  "minute > fromUnixTimestamp64Milli({from:Int64}) - INTERVAL 1 MINUTE AND minute <= fromUnixTimestamp64Milli({to:Int64})";
const BUCKET = "{from:Int64} + intDiv(ms - {from:Int64}, {bucket:Int64}) * {bucket:Int64}";
/** Very large numbers may add up to infinity, which JSON has no word for. */
const mean = (expression: string): string =>
  `least(greatest(${expression}, -${Number.MAX_VALUE}), ${Number.MAX_VALUE})`;

/** The points themselves, or their means where they are too many. */
const SERIES_OF_POINTS = `
  SELECT metric, n, if(n > {max_points:UInt32}, ${BUCKET}, ms) AS at, ${mean("avg(value)")} AS value
  FROM (
    SELECT metric, toUnixTimestamp64Milli(ts) AS ms, value, count() OVER (PARTITION BY metric) AS n
    FROM points_v1 FINAL
    WHERE ${OF_AGENT} AND ${IN_RANGE}
  )
  GROUP BY metric, n, at
  ORDER BY metric, at`;

/** The same over a range so long that each mean is over minutes; of a metric with few points only their number. */
const SERIES_OF_MINUTES = `
  SELECT metric, n, if(n > {max_points:UInt32}, ${BUCKET}, 0) AS at, ${mean("sum(total) / sum(points)")} AS value
  FROM (
    SELECT metric, toInt64(toUnixTimestamp(minute)) * 1000 AS ms, minutes.n AS points, total, sum(points) OVER (PARTITION BY metric) AS n
    FROM minutes_v1 AS minutes
    WHERE ${OF_AGENT} AND ${IN_MINUTES}
  )
  GROUP BY metric, n, at
  ORDER BY metric, at`;

/** The points of those metrics that have few. */
const SPARSE_SERIES = `
  SELECT metric, 0 AS n, toUnixTimestamp64Milli(ts) AS at, value
  FROM points_v1 FINAL
  WHERE ${OF_AGENT} AND ${IN_RANGE} AND metric GLOBAL IN (
    SELECT metric FROM minutes_v1 WHERE ${OF_AGENT} AND ${IN_MINUTES} GROUP BY metric HAVING sum(n) <= {max_points:UInt32}
  )
  ORDER BY metric, at`;

/** Rows that come metric by metric, as one series each. */
function grouped<V>(
  rows: readonly { metric: string; n: number; at: number; value: V }[],
): (Series<V> & { n: number })[] {
  const all: (Series<V> & { n: number })[] = [];
  for (const { metric, n, at, value } of rows) {
    let series = all.at(-1);
    if (series?.metric !== metric) {
      series = { metric, n, points: [] };
      all.push(series);
    }
    series.points.push({ tsMs: at, value });
  }
  return all;
}
