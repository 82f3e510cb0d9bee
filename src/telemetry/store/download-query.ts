import { Unavailable } from "../../lib/errors.ts";
import type { ClickHouse } from "../../storage/clickhouse.ts";
import { READ_SETTINGS } from "./clickhouse-query.ts";

/** Streams the result of a query in a file format, as ClickHouse writes it. */

export const DOWNLOAD_FORMATS = {
  csv: "CSVWithNames",
  ndjson: "JSONEachRow",
  parquet: "Parquet",
  arrow: "ArrowStream",
} as const;
export type DownloadFormat = keyof typeof DOWNLOAD_FORMATS;

const SETTINGS = {
  ...READ_SETTINGS,
  date_time_output_format: "iso",
  // Readers of Parquet and Arrow expect text, not bytes.
  output_format_parquet_string_as_string: 1,
  output_format_arrow_string_as_string: 1,
} as const;

type Parameters = Record<string, string | number | readonly string[]>;

export async function streamDownload(
  clickhouse: ClickHouse,
  select: string,
  parameters: Parameters,
  format: DownloadFormat,
): Promise<ReadableStream<Uint8Array>> {
  const boundary = `controller-${crypto.randomUUID()}`;
  const parts = {
    query: `${select} FORMAT ${DOWNLOAD_FORMATS[format]}`,
    ...Object.fromEntries(Object.entries(parameters).map(([name, value]) => [`param_${name}`, toText(value)])),
  };
  const { stream, response_headers } = await clickhouse.run((client, abort_signal) =>
    client.exec({
      // The client sends parameters of this call in the URL, and a list of agents is too long for that.
      query: toMultipart(parts, boundary),
      http_headers: { "Content-Type": `multipart/form-data; boundary=${boundary}` },
      abort_signal,
      clickhouse_settings: SETTINGS,
    }),
  );
  const tag = response_headers["x-clickhouse-exception-tag"];
  return stream.pipeThrough(withoutException(typeof tag === "string" ? tag : undefined));
}

/** Names of parts are those of this module. No value contains the boundary, which is random. */
const toMultipart = (parts: Record<string, string>, boundary: string): string =>
  [
    ...Object.entries(parts).map(
      ([name, value]) => `--${boundary}\r\nContent-Disposition: form-data; name="${name}"\r\n\r\n${value}\r\n`,
    ),
    `--${boundary}--\r\n`,
  ].join("");

/** Writes a parameter as ClickHouse reads it. */
function toText(value: Parameters[string]): string {
  if (typeof value === "number") return String(value);
  if (typeof value === "string") return withEscapes(value);
  return `[${value.map((item) => `'${withEscapes(item)}'`).join()}]`;
}

const ESCAPES: Record<string, string> = { "\\": "\\\\", "\t": "\\t", "\n": "\\n", "\r": "\\r", "'": "\\'" };
const withEscapes = (text: string): string => text.replace(/[\\\t\n\r']/g, (char) => ESCAPES[char] ?? char);

/** At least the longest error that ClickHouse writes at the end of a response. */
const HELD_BYTES = 32 * 1024;
const utf8 = new TextDecoder();

/**
 * Passes a response of ClickHouse on. After it has begun, ClickHouse can only write an error at its end, with a tag that it has sent in a
 * header. The stream then fails: a truncated file must not look complete, and a reader must not see the error.
 */
function withoutException(tag: string | undefined): TransformStream<Uint8Array, Uint8Array> {
  const held: Uint8Array[] = [];
  let heldBytes = 0;
  return new TransformStream({
    transform(chunk, controller) {
      held.push(chunk);
      heldBytes += chunk.length;
      for (let [first] = held; first !== undefined && heldBytes - first.length >= HELD_BYTES; [first] = held) {
        controller.enqueue(first);
        heldBytes -= first.length;
        held.shift();
      }
    },
    flush(controller) {
      const end = held.map((chunk) => utf8.decode(chunk)).join("");
      if (tag !== undefined && end.endsWith(`${tag}\r\n__exception__\r\n`)) {
        controller.error(new Unavailable("telemetry store", new Error("The query failed after its first rows")));
        return;
      }
      for (const chunk of held) controller.enqueue(chunk);
    },
  });
}
