import * as z from "zod";
import type { ClickHouse } from "../../storage/clickhouse.ts";
import type { Sample } from "../samples.ts";
import { column, createQuery, IN_MINUTES, IN_RANGE, READ_SETTINGS } from "./clickhouse-query.ts";
import { MAX_POINTS, readSeries, type Series, type SeriesQuery } from "./series-queries.ts";

/** The telemetry in ClickHouse: what goes in, and every question that is asked of it. */

export interface AgentSample extends Sample {
  apId: string;
  /** When it was received. A Worker of an earlier version does not tell; the store then takes its own time. */
  receivedMs?: number;
}

export interface HistoryQuery extends Omit<SeriesQuery, "metrics"> {
  of: "numbers" | "texts";
  /** Only what comes after this row. */
  after?: { field: string; tsMs: number } | undefined;
  limit: number;
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
  /** When something was last received from each of the agents, or of all, in milliseconds of the epoch. */
  lastSeen(apIds?: readonly string[]): Promise<Map<string, number>>;
  /** The time of each agent's newest sample, by the agent's own clock, in milliseconds of the epoch. */
  newestSamples(apIds: readonly string[]): Promise<Map<string, number>>;
  /** Names of the metrics heard of since then. */
  metrics(apId: string, sinceMs: number): Promise<string[]>;
}

/** Names or samples in one query: the server takes 128 KiB in one parameter. */
const MAX_ASKED = 500;

const RawPoints = z.object({
  data: z.object({ metric: column(z.string()), at: column(z.number()), value: column(z.number()) }),
});
const Texts = z.array(z.object({ metric: z.string(), at: z.coerce.number(), value: z.string() }));
const Stored = z.array(z.object({ ap_id: z.string(), at: z.coerce.number(), metric: z.string() }));
const Times = z.tuple([z.object({ ap_ids: z.array(z.string()), times: z.array(z.coerce.number()) })]);
const Counted = z.array(z.object({ count: z.coerce.number() }));
const Names = z.array(z.object({ metric: z.string() }));

export function createTelemetryStore(clickhouse: ClickHouse): TelemetryStore {
  const rows = createQuery(clickhouse, "JSONEachRow");
  const columns = createQuery(clickhouse, "JSONColumnsWithMetadata");

  /** The latest of a time of each agent, or of all. */
  const latest = async (column: "last_seen" | "last_received", apIds?: readonly string[]) => {
    const found = new Map<string, number>();
    // All in one row: there may be many agents, and an overview asks often.
    for (const asked of apIds === undefined ? [undefined] : chunks(apIds, MAX_ASKED)) {
      const [{ ap_ids, times }] = await rows(
        Times,
        `SELECT groupArray(ap_id) AS ap_ids, groupArray(at) AS times
         FROM (
           SELECT ap_id, toUnixTimestamp64Milli(max(${column})) AS at FROM agents_v1
           WHERE {all:Bool} OR ap_id IN {ap_ids:Array(String)}
           GROUP BY ap_id
         )`,
        { all: asked === undefined, ap_ids: asked ?? [] },
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
            ...{ ap_id: apId, ts: tsMs, metrics, texts },
            ...(receivedMs !== undefined && { received_at: receivedMs }),
          })),
          abort_signal,
          clickhouse_settings: {
            insert_deduplication_token: token,
            deduplicate_blocks_in_dependent_materialized_views: 1,
            // The quick way of reading a number is off by a bit now and then.
            precise_float_parsing: 1,
            // A batch spans a few weeks; the limit is the group commit's.
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
      for (const asked of chunks(samples, MAX_ASKED)) {
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

    async series(query) {
      return await readSeries(columns, query);
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
      const byField = Map.groupBy(found, ({ metric }) => metric);
      return [...byField].map(([metric, its]) => ({
        metric,
        points: its.map(({ at, value }) => ({ tsMs: at, value })).reverse(),
      }));
    },

    async history({ apId, fromMs, toMs, of, after, limit }) {
      const [table, field] = of === "numbers" ? ["points_v1", "metric"] : ["texts_v1", "field"];
      const text = await clickhouse.run(async (client, abort_signal) => {
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
          clickhouse_settings: { ...READ_SETTINGS, ...IN_SMALL_BLOCKS, date_time_output_format: "iso" },
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
      return await latest("last_received", apIds);
    },

    async newestSamples(apIds) {
      return await latest("last_seen", apIds);
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

function* chunks<T>(items: readonly T[], size: number): Generator<readonly T[]> {
  for (let i = 0; i < items.length; i += size) yield items.slice(i, i + size);
}

/**
 * For reading a little in the order of the table. One block is read of each part before the first row is known, and a long past has
 * many parts: with blocks of the usual size that is a hundred times what is asked for.
 */
const IN_SMALL_BLOCKS = { max_block_size: "8192" } as const;
