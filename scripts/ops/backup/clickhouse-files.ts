import type { ReadableStream } from "node:stream/web";
import type * as z from "zod";
import type { StoresConfig } from "../../../src/env.ts";
import { UserError } from "../../../src/programs/shared/cli.ts";

/** ClickHouse by plain HTTP: whole tables pass through as streams of bytes, which its client would make rows of. */

export interface Question {
  settings?: Record<string, string | number>;
  signal?: AbortSignal;
  /** What goes along with an insert, and how it is compressed. */
  body?: ReadableStream;
  encoding?: string;
}

const MAX_COMPLAINT = 300;

export async function ask(
  config: StoresConfig,
  query: string,
  { settings = {}, signal, body, encoding }: Question = {},
): Promise<Response> {
  const url = new URL(config.CLICKHOUSE_URL);
  url.searchParams.set("database", config.CLICKHOUSE_DATABASE);
  for (const [name, value] of Object.entries(settings)) url.searchParams.set(name, String(value));
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
    throw new UserError(
      `ClickHouse cannot be reached at ${url.origin}: ${error instanceof Error ? error.message : error}`,
    );
  });
  if (!response.ok)
    throw new UserError(`ClickHouse refused: ${(await response.text()).slice(0, MAX_COMPLAINT).trim()}`);
  return response;
}

/** Asks for something to be done, and waits until it is. */
export async function command(config: StoresConfig, query: string, question?: Question): Promise<void> {
  await (await ask(config, query, question)).arrayBuffer();
}

export async function askRows<S extends z.ZodType>(
  config: StoresConfig,
  schema: S,
  query: string,
): Promise<z.output<S>> {
  const text = await (await ask(config, `${query} FORMAT JSONEachRow`)).text();
  return schema.parse(
    text
      .split("\n")
      .filter((line) => line !== "")
      .map((line) => JSON.parse(line) as unknown),
  );
}
