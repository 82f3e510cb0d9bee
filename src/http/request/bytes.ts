import { sleep } from "../../lib/deadline.ts";
import { Malformed, TooLarge } from "../../lib/errors.ts";
import { ProtocolError } from "../../protocols/protocol-error.ts";
import type { AppContext } from "../context.ts";
import { limitBody } from "../validation.ts";

/** Limit of a body after its decompression. The limit before it is that of all bodies. */
export const MAX_DECOMPRESSED_BYTES = 8 * 1024 * 1024;

/** Returns the body as it was sent. Throws `TooLarge` if it is too large. */
export async function readBytes(c: AppContext): Promise<Uint8Array<ArrayBuffer>> {
  await limitBody(c);
  return new Uint8Array(await c.req.arrayBuffer());
}

/** Returns the body, decompressed if it is compressed with gzip. Throws `TooLarge` or `Malformed` if it cannot be. */
export async function readDecompressed(c: AppContext): Promise<Uint8Array<ArrayBuffer>> {
  const encoding = c.req.header("Content-Encoding")?.trim().toLowerCase() ?? "identity";
  if (encoding === "identity" || encoding === "") return await readBytes(c);
  if (encoding !== "gzip" && encoding !== "x-gzip") {
    throw new ProtocolError("unsupported", "The content encoding must be gzip or identity");
  }
  return await gunzip(await readBytes(c));
}

/** One byte becomes at most 1,032. So the output of a slice is not much longer than the limit of all. */
const SLICE_BYTES = 8 * 1024;

/**
 * Decompresses one slice after the other, and reads the output of a slice before the next one: the platform's stream decompresses everything
 * that it is given, whether it is read or not. A megabyte can become a gigabyte.
 */
async function gunzip(bytes: Uint8Array<ArrayBuffer>): Promise<Uint8Array<ArrayBuffer>> {
  const stream = new DecompressionStream("gzip");
  const reader = (stream.readable as ReadableStream<Uint8Array>).getReader();
  const writer = stream.writable.getWriter();
  const chunks: Uint8Array[] = [];
  let length = 0;
  // If the body is invalid, all promises of the streams fail. It is enough to notice one.
  const ignore = (): void => {};
  const read = () => {
    const result = reader.read();
    result.catch(ignore);
    return result;
  };
  let next = read();
  for (const ended of [reader.closed, writer.closed, writer.ready]) ended.catch(ignore);
  const keep = (chunk: Uint8Array): void => {
    length += chunk.byteLength;
    if (length > MAX_DECOMPRESSED_BYTES) throw new TooLarge("Decompressed request body");
    chunks.push(chunk);
    next = read();
  };
  try {
    for (let from = 0; from < bytes.length; from += SLICE_BYTES) {
      await writer.write(bytes.subarray(from, from + SLICE_BYTES));
      for (;;) {
        // The platform delivers what can be read before it runs a timer. If not, it decompresses one more slice than is read.
        const result = await Promise.race([next, sleep(0)]);
        if (result?.value === undefined) break;
        keep(result.value);
      }
    }
    await writer.close();
    for (let result = await next; result.value !== undefined; result = await next) keep(result.value);
  } catch (error) {
    writer.abort().catch(ignore);
    throw error instanceof TooLarge ? error : new Malformed("There was an error parsing the body");
  }
  const whole = new Uint8Array(length);
  let at = 0;
  for (const chunk of chunks) {
    whole.set(chunk, at);
    at += chunk.byteLength;
  }
  return whole;
}
