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

export interface Series<V = number> {
  metric: string;
  /** Where there were too many points: how long each of the equal spans is over which they are averaged. */
  bucketMs?: number;
  points: { tsMs: number; value: V }[];
}

export interface TelemetryStore {
  /** Commits samples. The same batch under the same token, sent again, changes nothing. */
  insert(samples: readonly AgentSample[], token: string): Promise<void>;
  /** Points in ascending order, at most `MAX_POINTS` of each metric; only metrics that have any. */
  series(query: SeriesQuery): Promise<Series[]>;
  /** Every point since then, one by one; nothing where they are more than `max`. */
  recent(
    apId: string,
    sinceMs: number,
    max: number,
  ): Promise<{ metric: string; tsMs: number; value: number }[] | undefined>;
  texts(query: Omit<SeriesQuery, "metrics">): Promise<Series<string>[]>;
  /** When each of the agents, or of all, was last heard of, in milliseconds of the epoch. */
  lastSeen(apIds?: readonly string[]): Promise<Map<string, number>>;
  /** Names of the metrics heard of since then. */
  metrics(apId: string, sinceMs: number): Promise<string[]>;
}

export const MAX_POINTS = 2_000;

const Points = z.array(
  z.object({ metric: z.string(), n: z.coerce.number(), at: z.coerce.number(), value: z.number() }),
);
const RawPoints = z.array(z.object({ metric: z.string(), at: z.coerce.number(), value: z.number() }));
const Texts = z.array(z.object({ metric: z.string(), at: z.coerce.number(), value: z.string() }));
const LastSeen = z.array(z.object({ ap_id: z.string(), at: z.coerce.number() }));
const Names = z.array(z.object({ metric: z.string() }));

export function createTelemetryStore(clickhouse: ClickHouse): TelemetryStore {
  const rows = async <S extends z.ZodType>(
    schema: S,
    query: string,
    query_params: Record<string, unknown>,
  ): Promise<z.output<S>> =>
    schema.parse(
      await clickhouse.reach(async (client, abort_signal) => {
        const answer = await client.query({ query, query_params, abort_signal, format: "JSONEachRow" });
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
          },
        }),
      );
    },

    async series({ apId, metrics, fromMs, toMs }) {
      const bucketMs = Math.floor((toMs - fromMs) / MAX_POINTS) + 1;
      const found = await rows(
        Points,
        `SELECT metric, n, if(n > {max_points:UInt32}, {from:Int64} + intDiv(ms - {from:Int64}, {bucket:Int64}) * {bucket:Int64}, ms) AS at,
                avg(value) AS value
         FROM (
           SELECT metric, toUnixTimestamp64Milli(ts) AS ms, value, count() OVER (PARTITION BY metric) AS n
           FROM points_v1 FINAL
           WHERE ap_id = {ap_id:String}
             AND ts >= fromUnixTimestamp64Milli({from:Int64}) AND ts <= fromUnixTimestamp64Milli({to:Int64})
             AND ({all:Bool} OR metric IN {metrics:Array(String)})
         )
         GROUP BY metric, n, at
         ORDER BY metric, at`,
        {
          ap_id: apId,
          from: fromMs,
          to: toMs,
          bucket: bucketMs,
          max_points: MAX_POINTS,
          all: metrics === undefined,
          metrics: metrics ?? [],
        },
      );
      return grouped(found).map((series) => (series.n > MAX_POINTS ? { ...series, bucketMs } : series));
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

    async lastSeen(apIds) {
      const found = await rows(
        LastSeen,
        `SELECT ap_id, toUnixTimestamp64Milli(max(last_seen)) AS at FROM agents_v1
         WHERE {all:Bool} OR ap_id IN {ap_ids:Array(String)}
         GROUP BY ap_id`,
        { all: apIds === undefined, ap_ids: apIds ?? [] },
      );
      return new Map(found.map(({ ap_id, at }) => [ap_id, at]));
    },

    async metrics(apId, sinceMs) {
      const found = await rows(
        Names,
        `SELECT metric FROM metrics_v1
         WHERE ap_id = {ap_id:String}
         GROUP BY metric
         HAVING max(last_seen) >= fromUnixTimestamp64Milli({since:Int64})
         ORDER BY metric`,
        { ap_id: apId, since: sinceMs },
      );
      return found.map(({ metric }) => metric);
    },
  };
}

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
