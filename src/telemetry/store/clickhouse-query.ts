import type { ClickHouseSettings } from "@clickhouse/client-web";
import * as z from "zod";
import type { ClickHouse } from "../../storage/clickhouse.ts";

/** Runs queries against ClickHouse. Holds the settings and conditions that several queries share. */

export const READ_SETTINGS = {
  readonly: "2",
  // Stop a query when its client disconnects.
  cancel_http_readonly_queries_on_client_close: 1,
  // All copies of a value are in the partition of its week.
  do_not_merge_across_partitions_select_final: 1,
  // On a cluster, query the agent's shard only.
  optimize_skip_unused_shards: 1,
  // Another node that sends nothing in this time, in seconds, does not respond. While it works, it reports its progress.
  receive_timeout: 3,
  // Times in milliseconds and row counts are safe integers in JavaScript.
  output_format_json_quote_64bit_integers: 0,
} as const;

/** Runs a query and validates the result with a schema. */
export type RunQuery = <S extends z.ZodType>(
  schema: S,
  query: string,
  params: Record<string, unknown>,
  settings?: ClickHouseSettings,
) => Promise<z.output<S>>;

/** Returns a function that runs queries in a format. Use columns for many rows: validation takes a fifth of the time. */
export const createQuery =
  (clickhouse: ClickHouse, format: "JSONEachRow" | "JSONColumnsWithMetadata"): RunQuery =>
  async (schema, query, query_params, settings) =>
    schema.parse(
      await clickhouse.run(async (client, abort_signal) => {
        const response = await client.query({
          query,
          query_params,
          abort_signal,
          format,
          clickhouse_settings: { ...READ_SETTINGS, ...settings },
        });
        return await response.json();
      }),
    );

/** Returns the schema of a column. Without rows, a response in columns omits the columns. */
export const column = <S extends z.ZodType>(value: S) => z.array(value).default([]);

export const IN_RANGE = "ts >= fromUnixTimestamp64Milli({from:Int64}) AND ts <= fromUnixTimestamp64Milli({to:Int64})";
export const IN_MINUTES =
  "minute > fromUnixTimestamp64Milli({from:Int64}) - INTERVAL 1 MINUTE AND minute <= fromUnixTimestamp64Milli({to:Int64})";

/** Clamps a mean: the sum of very large numbers may be infinite, and JSON cannot represent infinity. */
export const finite = (expression: string): string =>
  `least(greatest(${expression}, -${Number.MAX_VALUE}), ${Number.MAX_VALUE})`;
