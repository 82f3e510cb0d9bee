import type { AppContext } from "./context.ts";

/**
 * Responds with a JSON array, one page at a time, so that a long list is never in memory as a whole. If the first or second page fails,
 * the error handler responds. A later failure breaks the connection: a truncated array must not look complete.
 */
export async function jsonArray(c: AppContext, pages: AsyncGenerator<readonly unknown[]>): Promise<Response> {
  const headers = { "Content-Type": "application/json" };
  const first = await nextItems(pages);
  const second = first === undefined ? undefined : await nextItems(pages);
  if (second === undefined) return c.body(`[${first ?? ""}]`, 200, headers);
  const ready = [`[${first}`, `,${second}`];
  const encoder = new TextEncoder();
  const stream = new ReadableStream<Uint8Array>({
    async pull(controller) {
      const text = ready.shift() ?? (await nextChunk(pages));
      controller.enqueue(encoder.encode(text ?? "]"));
      if (text === undefined) controller.close();
    },
    async cancel() {
      await pages.return(undefined);
    },
  });
  return c.body(stream, 200, headers);
}

const nextChunk = async (pages: AsyncGenerator<readonly unknown[]>): Promise<string | undefined> => {
  const text = await nextItems(pages);
  return text === undefined ? undefined : `,${text}`;
};

/** Returns the items of the next page that is not empty, as JSON without the brackets. */
async function nextItems(pages: AsyncGenerator<readonly unknown[]>): Promise<string | undefined> {
  for (let page = await pages.next(); !page.done; page = await pages.next())
    if (page.value.length > 0) return JSON.stringify(page.value).slice(1, -1);
  return undefined;
}
