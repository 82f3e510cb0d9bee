import type { AppContext } from "./context.ts";

/**
 * Answers with an array in JSON, page by page: a long list is never in memory as a whole. If the first page fails, the error goes the
 * usual way. Later it breaks the connection: an array that ends early must not look whole.
 */
export async function jsonArray(c: AppContext, pages: AsyncGenerator<readonly unknown[]>): Promise<Response> {
  const headers = { "Content-Type": "application/json" };
  const first = await nextText(pages);
  const second = first === undefined ? undefined : await nextText(pages);
  if (second === undefined) return c.body(`[${first ?? ""}]`, 200, headers);
  const ready = [`[${first}`, `,${second}`];
  const encoder = new TextEncoder();
  const stream = new ReadableStream<Uint8Array>({
    async pull(controller) {
      const text = ready.shift() ?? (await following(pages));
      controller.enqueue(encoder.encode(text ?? "]"));
      if (text === undefined) controller.close();
    },
    async cancel() {
      await pages.return(undefined);
    },
  });
  return c.body(stream, 200, headers);
}

const following = async (pages: AsyncGenerator<readonly unknown[]>): Promise<string | undefined> => {
  const text = await nextText(pages);
  return text === undefined ? undefined : `,${text}`;
};

/** The members of the next page that has any, as they stand in an array. */
async function nextText(pages: AsyncGenerator<readonly unknown[]>): Promise<string | undefined> {
  for (let page = await pages.next(); !page.done; page = await pages.next())
    if (page.value.length > 0) return JSON.stringify(page.value).slice(1, -1);
  return undefined;
}
