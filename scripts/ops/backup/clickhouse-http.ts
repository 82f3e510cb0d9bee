import type { ReadableStream } from "node:stream/web";
import type * as z from "zod";
import type { StoresConfig } from "../../../src/env.ts";
import { UserError } from "../../../src/programs/shared/cli.ts";
import { respondingUrl } from "../../../src/programs/telemetry-store/nodes.ts";
import { ONE_REPLICA } from "../../../src/storage/clickhouse.ts";

/** Queries ClickHouse over plain HTTP, to stream whole tables as bytes. ClickHouse's own client would parse every row. */

export interface QueryOptions {
  settings?: Record<string, string | number>;
  signal?: AbortSignal;
  /** The data of an insert, and its compression. */
  body?: ReadableStream;
  encoding?: string;
}

const MAX_ERROR_LENGTH = 300;

/** Sends a query. Throws a `UserError` if ClickHouse is unavailable or rejects the query. */
export async function sendQuery(
  config: StoresConfig,
  query: string,
  { settings = {}, signal, body, encoding }: QueryOptions = {},
): Promise<Response> {
  const url = new URL(await respondingUrl(config));
  url.searchParams.set("database", config.CLICKHOUSE_DATABASE);
  // A restore reads what it has written.
  const all = { ...(config.CLICKHOUSE_CLUSTER !== undefined && ONE_REPLICA), ...settings };
  for (const [name, value] of Object.entries(all)) url.searchParams.set(name, String(value));
  if (body !== undefined) url.searchParams.set("query", query);
  const response = await fetch(url, {
    method: "POST",
    headers: {
      Authorization: `Basic ${Buffer.from(`${config.CLICKHOUSE_USER}:${config.CLICKHOUSE_PASSWORD}`).toString("base64")}`,
      ...(encoding !== undefined && { "Content-Encoding": encoding }),
    },
    ...(body === undefined ? { body: query } : { body, duplex: "half" }),
    ...(signal && { signal }),
  } as RequestInit).catch((error: unknown) => {
    if (signal?.aborted) throw error;
    throw new UserError(`Cannot reach ClickHouse at ${url.origin}: ${error instanceof Error ? error.message : error}`);
  });
  if (!response.ok)
    throw new UserError(`ClickHouse rejected a query: ${(await response.text()).slice(0, MAX_ERROR_LENGTH).trim()}`);
  return response;
}

/** Runs a statement that returns no rows, and waits for its end. */
export async function execute(config: StoresConfig, statement: string, options?: QueryOptions): Promise<void> {
  await (await sendQuery(config, statement, options)).arrayBuffer();
}

/** Returns the rows of a query, validated by a schema. */
export async function queryRows<S extends z.ZodType>(
  config: StoresConfig,
  schema: S,
  query: string,
): Promise<z.output<S>> {
  const text = await (await sendQuery(config, `${query} FORMAT JSONEachRow`)).text();
  return schema.parse(
    text
      .split("\n")
      .filter((line) => line !== "")
      .map((line) => JSON.parse(line) as unknown),
  );
}
