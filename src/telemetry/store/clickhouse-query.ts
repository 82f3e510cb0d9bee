import * as z from "zod";
import type { ClickHouse } from "../../storage/clickhouse.ts";

/** How ClickHouse is asked, and the parts that many questions share. */

/** A read whose asker has gone is cut off. */
export const READ_SETTINGS = {
  readonly: "2",
  cancel_http_readonly_queries_on_client_close: 1,
  // All copies of a value lie in the partition of its week.
  do_not_merge_across_partitions_select_final: 1,
  // On a cluster: only the agent's shard is asked.
  optimize_skip_unused_shards: 1,
  // Times in milliseconds and numbers of rows are far from what a number cannot hold.
  output_format_json_quote_64bit_integers: 0,
} as const;

/** Asks, and holds the answer against a schema. */
export type RunQuery = <S extends z.ZodType>(
  schema: S,
  query: string,
  params: Record<string, unknown>,
) => Promise<z.output<S>>;

/** In columns where there may be many rows: to look at each number is a fifth of the work of looking at as many objects. */
export const createQuery =
  (clickhouse: ClickHouse, format: "JSONEachRow" | "JSONColumnsWithMetadata"): RunQuery =>
  async (schema, query, query_params) =>
    schema.parse(
      await clickhouse.run(async (client, abort_signal) => {
        const answer = await client.query({
          query,
          query_params,
          abort_signal,
          format,
          clickhouse_settings: READ_SETTINGS,
        });
        return await answer.json();
      }),
    );

/** Where there are no rows, an answer in columns names none of them. */
export const column = <S extends z.ZodType>(value: S) => z.array(value).default([]);

export const IN_RANGE = "ts >= fromUnixTimestamp64Milli({from:Int64}) AND ts <= fromUnixTimestamp64Milli({to:Int64})";
export const IN_MINUTES =
  "minute > fromUnixTimestamp64Milli({from:Int64}) - INTERVAL 1 MINUTE AND minute <= fromUnixTimestamp64Milli({to:Int64})";
