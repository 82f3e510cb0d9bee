import type { ClickHouseSettings } from "@clickhouse/client-web";
import * as z from "zod";
import type { ClickHouse } from "../../storage/clickhouse.ts";
import { isShardFailure } from "../../storage/clickhouse-errors.ts";
import type { PendingSeries } from "../pending-samples.ts";
import type { LastSeen } from "../presence.ts";
import type { Sample, Source } from "../samples.ts";
import { type AggregatePoints, type AggregateRange, readAggregate } from "./aggregate-queries.ts";
import { type HourMeansQuery, readHourMeans } from "./baseline-queries.ts";
import { column, createQuery, IN_MINUTES, IN_RANGE, READ_SETTINGS } from "./clickhouse-query.ts";
import { MAX_POINTS, readSeries, type Series, type SeriesQuery } from "./series-queries.ts";

/** Inserts telemetry into ClickHouse, and queries it. */

/** Only one of an agent's samples in a request names its source. */
export interface AgentSample extends Sample, Partial<Source> {
  apId: string;
  /** When the service received it. Absent in samples from a Worker of an earlier version; the store then uses its own time. */
  receivedMs?: number;
}

export interface HistoryQuery extends Omit<SeriesQuery, "metrics"> {
  /** Job cursors store this value: do not rename `texts`. */
  of: "numbers" | "texts";
  /** Only rows after this one. */
  after?: { field: string; tsMs: number } | undefined;
  limit: number;
}

export interface TelemetryStore {
  /** Commits samples. A second insert of the same batch with the same token changes nothing. */
  insert(samples: readonly AgentSample[], token: string): Promise<void>;
  /** Returns the keys of the stored numbers of these samples. May include keys with the agent of one sample and the time of another. */
  stored(samples: readonly AgentSample[]): Promise<{ apId: string; tsMs: number; metric: string }[]>;
  /**
   * Returns points in ascending order, at most `MAX_POINTS` of each metric. Omits metrics without points.
   * @param pending points that may not be stored yet
   */
  series(query: SeriesQuery, pending?: PendingSeries): Promise<Series[]>;
  /** Returns a statistic of one metric over the agents of each group, from the rollup. Omits groups and buckets without values. */
  aggregate(range: AggregateRange): Promise<AggregatePoints>;
  /** Returns every point since a time, or `undefined` if there are more than `max`. */
  recent(
    apId: string,
    sinceMs: number,
    max: number,
  ): Promise<{ metric: string; tsMs: number; value: number }[] | undefined>;
  /** Returns the newest text values in ascending order, at most `MAX_POINTS` of each field. */
  strings(query: Omit<SeriesQuery, "metrics">): Promise<Series<string>[]>;
  /** Returns rows as JSON texts `{time, field, value}`, in the order of field and time. */
  history(query: HistoryQuery): Promise<string[]>;
  /** Returns the number of rows, numbers and texts. Counts numbers by whole minutes, so the result may be a little too high. */
  countHistory(query: Omit<SeriesQuery, "metrics">): Promise<number>;
  /** Returns when the service last received something, by agent, in milliseconds since the epoch. Default: all agents. */
  lastSeen(apIds?: readonly string[]): Promise<Map<string, number>>;
  /** Like `lastSeen`, but omits agents on shards of a ClickHouse cluster that do not respond, unless none responds. */
  availableLastSeen(apIds?: readonly string[]): Promise<LastSeen>;
  /** Returns the time of the newest sample, by agent and by the agent's own clock, in milliseconds since the epoch. */
  newestSamples(apIds: readonly string[]): Promise<Map<string, number>>;
  /** Returns the names of the metrics that have points since a time. */
  metrics(apId: string, sinceMs: number): Promise<string[]>;
  /** Returns the mean of a metric at the same hour of earlier days, by agent. Omits agents without samples then. */
  hourMeans(query: HourMeansQuery): Promise<Map<string, number>>;
}

/** Names or samples in one query. The server's limit for one parameter is 128 KiB. */
const MAX_PER_QUERY = 500;

const RawPoints = z.object({
  data: z.object({ metric: column(z.string()), at: column(z.number()), value: column(z.number()) }),
});
const StringPoints = z.array(z.object({ metric: z.string(), at: z.coerce.number(), value: z.string() }));
const StoredKeys = z.array(z.object({ ap_id: z.string(), at: z.coerce.number(), metric: z.string() }));
const Times = z.tuple([z.object({ ap_ids: z.array(z.string()), times: z.array(z.coerce.number()) })]);
const Counts = z.array(z.object({ count: z.coerce.number() }));
const Names = z.array(z.object({ metric: z.string() }));

export function createTelemetryStore(clickhouse: ClickHouse): TelemetryStore {
  const rows = createQuery(clickhouse, "JSONEachRow");
  const columns = createQuery(clickhouse, "JSONColumnsWithMetadata");

  /** Returns the maximum of a column by agent. `last_received` has times of receipt, `last_seen` the times of the samples. */
  const latest = async (
    column: "last_seen" | "last_received",
    apIds?: readonly string[],
    settings?: ClickHouseSettings,
  ) => {
    const found = new Map<string, number>();
    // All agents in one row: cheaper to parse. There may be many, and the overview reads them often.
    for (const chunk of apIds === undefined ? [undefined] : chunks(apIds, MAX_PER_QUERY)) {
      const [{ ap_ids, times }] = await rows(
        Times,
        `SELECT groupArray(ap_id) AS ap_ids, groupArray(at) AS times
         FROM (
           SELECT ap_id, toUnixTimestamp64Milli(max(${column})) AS at FROM agents_v1
           WHERE {all:Bool} OR ap_id IN {ap_ids:Array(String)}
           GROUP BY ap_id
         )`,
        { all: chunk === undefined, ap_ids: chunk ?? [] },
        settings,
      );
      for (const [i, apId] of ap_ids.entries()) found.set(apId, times[i] ?? 0);
    }
    return found;
  };

  return {
    async insert(samples, token) {
      await clickhouse.run((client, abort_signal) =>
        client.insert({
          table: "samples_v1",
          format: "JSONEachRow",
          values: samples.map(({ apId, tsMs, metrics, texts, receivedMs }) => ({
            ap_id: apId,
            ts: tsMs,
            metrics,
            texts,
            ...(receivedMs !== undefined && { received_at: receivedMs }),
          })),
          abort_signal,
          clickhouse_settings: {
            insert_deduplication_token: token,
            deduplicate_blocks_in_dependent_materialized_views: 1,
            // The default parser may be wrong in the last bit.
            precise_float_parsing: 1,
            // The group commit limits a batch to a few weeks already.
            max_partitions_per_insert_block: "0",
            // The rows of a batch have different keys. Background merges combine them with earlier rows anyway.
            optimize_on_insert: 0,
            // On a cluster, wait until the agent's shard has committed.
            distributed_foreground_insert: 1,
          },
        }),
      );
    },

    async stored(samples) {
      const found: { apId: string; tsMs: number; metric: string }[] = [];
      for (const chunk of chunks(samples, MAX_PER_QUERY)) {
        const times = [...new Set(chunk.map(({ tsMs }) => tsMs))];
        const values = await rows(
          StoredKeys,
          `SELECT DISTINCT ap_id, toUnixTimestamp64Milli(ts) AS at, metric
           FROM points_v1
           WHERE ap_id IN {ap_ids:Array(String)} AND toUnixTimestamp64Milli(ts) IN {times:Array(Int64)}
             AND ts >= fromUnixTimestamp64Milli({from:Int64}) AND ts <= fromUnixTimestamp64Milli({to:Int64})`,
          {
            ap_ids: [...new Set(chunk.map(({ apId }) => apId))],
            times,
            from: Math.min(...times),
            to: Math.max(...times),
          },
        );
        for (const { ap_id, at, metric } of values) found.push({ apId: ap_id, tsMs: at, metric });
      }
      return found;
    },

    async series(query, pending = new Map()) {
      return await readSeries(columns, query, pending);
    },

    async aggregate(range) {
      return await readAggregate(columns, range);
    },

    async recent(apId, sinceMs, max) {
      const { data } = await columns(
        RawPoints,
        `SELECT metric, toUnixTimestamp64Milli(ts) AS at, value
         FROM points_v1 FINAL
         WHERE ap_id = {ap_id:String} AND ts >= fromUnixTimestamp64Milli({since:Int64})
         ORDER BY metric, at
         LIMIT {limit:UInt32}`,
        { ap_id: apId, since: sinceMs, limit: max + 1 },
      );
      const { metric, at, value } = data;
      if (metric.length > max) return undefined;
      return metric.map((name, i) => ({ metric: name, tsMs: at[i] ?? 0, value: value[i] ?? 0 }));
    },

    async strings({ apId, fromMs, toMs }) {
      const found = await rows(
        StringPoints,
        `SELECT field AS metric, toUnixTimestamp64Milli(ts) AS at, value
         FROM texts_v1 FINAL
         WHERE ap_id = {ap_id:String}
           AND ts >= fromUnixTimestamp64Milli({from:Int64}) AND ts <= fromUnixTimestamp64Milli({to:Int64})
         ORDER BY metric, at DESC
         LIMIT {max_points:UInt32} BY metric`,
        { ap_id: apId, from: fromMs, to: toMs, max_points: MAX_POINTS },
      );
      const byField = Map.groupBy(found, ({ metric }) => metric);
      return [...byField].map(([metric, values]) => ({
        metric,
        points: values.map(({ at, value }) => ({ tsMs: at, value })).reverse(),
      }));
    },

    async history({ apId, fromMs, toMs, of, after, limit }) {
      const [table, field] = of === "numbers" ? ["points_v1", "metric"] : ["texts_v1", "field"];
      const text = await clickhouse.run(async (client, abort_signal) => {
        const response = await client.query({
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
          // The rows are passed on as they are, so times must have their final format.
          clickhouse_settings: { ...READ_SETTINGS, ...IN_SMALL_BLOCKS, date_time_output_format: "iso" },
        });
        return await response.text();
      });
      return text.split("\n").filter((line) => line !== "");
    },

    async countHistory({ apId, fromMs, toMs }) {
      const [counted] = await rows(
        Counts,
        `SELECT (SELECT sum(n) FROM minutes_v1 WHERE ap_id = {ap_id:String} AND ${IN_MINUTES})
              + (SELECT count() FROM texts_v1 WHERE ap_id = {ap_id:String} AND ${IN_RANGE}) AS count`,
        { ap_id: apId, from: fromMs, to: toMs },
      );
      return counted?.count ?? 0;
    },

    async lastSeen(apIds) {
      return await latest("last_received", apIds);
    },

    async availableLastSeen(apIds) {
      try {
        return { times: await latest("last_received", apIds), isComplete: true };
      } catch (error) {
        if (!isShardFailure(error)) throw error;
        const times = await latest("last_received", apIds, { skip_unavailable_shards: 1 });
        return { times, isComplete: false };
      }
    },

    async newestSamples(apIds) {
      return await latest("last_seen", apIds);
    },

    async metrics(apId, sinceMs) {
      const found = await rows(
        Names,
        // From the rollup, except the first minute, of which only a part is in the range.
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

    async hourMeans({ apIds, ...query }) {
      const means = new Map<string, number>();
      for (const chunk of chunks(apIds, MAX_PER_QUERY))
        for (const [apId, mean] of await readHourMeans(rows, { ...query, apIds: chunk })) means.set(apId, mean);
      return means;
    },
  };
}

function* chunks<T>(items: readonly T[], size: number): Generator<readonly T[]> {
  for (let i = 0; i < items.length; i += size) yield items.slice(i, i + size);
}

/**
 * For reading a few rows in the order of the table. ClickHouse reads one block of every part before it returns the first row, and a long
 * history has many parts. With blocks of the default size it would read a hundred times as much as needed.
 */
const IN_SMALL_BLOCKS = { max_block_size: "8192" } as const;
