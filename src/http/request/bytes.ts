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

async function gunzip(bytes: Uint8Array<ArrayBuffer>): Promise<Uint8Array<ArrayBuffer>> {
  const chunks: Uint8Array[] = [];
  let length = 0;
  try {
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
    for await (const chunk of stream as AsyncIterable<Uint8Array>) {
      length += chunk.byteLength;
      // Stops reading, so that no more is decompressed.
      if (length > MAX_DECOMPRESSED_BYTES) break;
      chunks.push(chunk);
    }
  } catch {
    throw new Malformed("There was an error parsing the body");
  }
  if (length > MAX_DECOMPRESSED_BYTES) throw new TooLarge("Decompressed request body");
  const whole = new Uint8Array(length);
  let at = 0;
  for (const chunk of chunks) {
    whole.set(chunk, at);
    at += chunk.byteLength;
  }
  return whole;
}
