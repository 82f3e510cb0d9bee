import type { AppContext } from "./context.ts";

/** Small pieces are joined up to this size: each chunk of a response costs a call into the platform. */
const MIN_CHUNK_BYTES = 64 * 1024;

/**
 * Responds with pieces, so that a long response is never in memory as a whole. If the first chunk fails, the error handler responds. A
 * later failure breaks the connection: a truncated response must not look complete.
 */
export async function pieceStream(
  c: AppContext,
  pieces: AsyncGenerator<Uint8Array | string> | Generator<Uint8Array | string>,
  headers: Record<string, string>,
): Promise<Response> {
  const first = await nextChunk(pieces);
  if (first.isLast) return c.body(first.bytes, 200, headers);
  let ready: Chunk | undefined = first;
  const stream = new ReadableStream<Uint8Array>({
    async pull(controller) {
      const { bytes, isLast } = ready ?? (await nextChunk(pieces));
      ready = undefined;
      if (bytes.length > 0) controller.enqueue(bytes);
      if (isLast) controller.close();
    },
    async cancel() {
      await pieces.return(undefined);
    },
  });
  return c.body(stream, 200, headers);
}

interface Chunk {
  bytes: Uint8Array<ArrayBuffer>;
  isLast: boolean;
}

const encoder = new TextEncoder();

async function nextChunk(pieces: AsyncGenerator<Uint8Array | string> | Generator<Uint8Array | string>): Promise<Chunk> {
  const parts: Uint8Array[] = [];
  let length = 0;
  let isLast = false;
  while (length < MIN_CHUNK_BYTES && !isLast) {
    const { done, value } = await pieces.next();
    isLast = done === true;
    if (value === undefined) continue;
    const part = typeof value === "string" ? encoder.encode(value) : value;
    parts.push(part);
    length += part.length;
  }
  const bytes = new Uint8Array(length);
  let at = 0;
  for (const part of parts) {
    bytes.set(part, at);
    at += part.length;
  }
  return { bytes, isLast };
}
