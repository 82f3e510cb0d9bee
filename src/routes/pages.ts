import { Hono } from "hono";
import * as z from "zod";
import type { AppEnv } from "../http/context.ts";
import type { OpenApiDocument } from "../http/docs/openapi.ts";
import { docsPage, docsStyle } from "../http/docs/reference-page.ts";
import type { Operation } from "../http/operation.ts";
import type { OperationSpec } from "../http/route-registry.ts";

const HTML = "text/html";
const CSS = "text/css";

/** Pages for people, and what belongs to them. */
export function pagesRoutes(operation: Operation, openApi: () => OpenApiDocument) {
  const file = (action: OperationSpec["action"], summary: string, produces: string) =>
    operation({
      action,
      tag: "Pages",
      summary,
      answer: z.string(),
      produces,
      ...(produces !== HTML && { hidden: true as const }),
    });
  const headers = (type: string) => ({
    "Content-Type": `${type}; charset=utf-8`,
    "Cache-Control": "public, max-age=300",
  });
  let docs: string | undefined;

  return new Hono<AppEnv>()
    .get("/docs", file("service.docs", "This interface as a page to read", HTML), (c) => {
      docs ??= docsPage(openApi());
      return c.html(docs);
    })
    .get("/docs/style.css", file("service.docs", "Its style", CSS), (c) => c.body(docsStyle, 200, headers(CSS)));
}
