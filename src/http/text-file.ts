import type { AppContext } from "./context.ts";

/**
 * Responds with a file, one piece at a time, so that a long one is never in memory as a whole. If the first or second piece fails, the
 * error handler responds. A later failure breaks the connection: a truncated file must not look complete.
 */
export async function textFile(
  c: AppContext,
  pieces: AsyncGenerator<string>,
  { type, name }: { type: string; name: string },
): Promise<Response> {
  const headers = { "Content-Type": type, "Content-Disposition": `attachment; filename="${name}"` };
  const [first, second] = [await pieces.next(), await pieces.next()];
  if (second.done) return c.body(first.value ?? "", 200, headers);
  const ready = [first.value ?? "", second.value];
  const encoder = new TextEncoder();
  const stream = new ReadableStream<Uint8Array>({
    async pull(controller) {
      const text = ready.shift() ?? (await pieces.next()).value;
      if (text === undefined) controller.close();
      else controller.enqueue(encoder.encode(text));
    },
    async cancel() {
      await pieces.return(undefined);
    },
  });
  return c.body(stream, 200, headers);
}
