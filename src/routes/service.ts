import { Hono } from "hono";
import * as z from "zod";
import type { AppEnv } from "../http/context.ts";
import type { OpenApiDocument } from "../http/docs/openapi.ts";
import type { Operation } from "../http/operation.ts";
import type { DeclaredRoute } from "../http/route-registry.ts";
import { withDeadline } from "../lib/deadline.ts";
import { CONTENT_TYPE } from "../monitoring/exposition.ts";
import { type OutboxSize, Readiness } from "../schemas/service.ts";
import type { Services } from "../services.ts";

const TAG = "Service";
const OUTBOX_TIMEOUT_MS = 1_000;
const AnyObject = z.record(z.string(), z.unknown());

/** Returns undefined if the store is unavailable: the state of the components already says so. */
async function sizeOf(outbox: Services["outbox"]): Promise<OutboxSize | undefined> {
  const state = await withDeadline(OUTBOX_TIMEOUT_MS, () => outbox.state()).catch(() => undefined);
  return state && { messages: state.messages, oldest_ms: state.oldestMs };
}

const loadDocuments = () => import("../http/docs/documents.ts");

/** Serves the state of the service, its keys, and the documentation of its API. */
export function serviceRoutes(
  operation: Operation,
  { health, outbox, scrape, tokens }: Pick<Services, "health" | "outbox" | "scrape" | "tokens">,
  routes: () => readonly DeclaredRoute[],
) {
  let document: OpenApiDocument | undefined;
  const openApi = async (): Promise<OpenApiDocument> => {
    document ??= (await loadDocuments()).buildOpenApi(routes());
    return document;
  };
  let docs: string | undefined;

  return new Hono<AppEnv>()
    .get(
      "/healthz",
      operation({
        action: "service.health",
        tag: TAG,
        summary: "Check that the service is alive",
        response: z.object({ status: z.literal("ok") }),
      }),
      (c) => c.json({ status: "ok" }),
    )
    .get(
      "/readyz",
      operation({
        action: "service.ready",
        tag: TAG,
        summary: "Check that the service is ready",
        description:
          "Checks each component that the service needs, for at most one second. With 503, `parts` and `detail` name the components that " +
          "are down.",
        response: Readiness,
        errorResponses: { 503: "A component is down" },
      }),
      async (c) => {
        const [parts, size] = await Promise.all([health.check(), sizeOf(outbox)]);
        const down = Object.keys(parts).filter((name) => parts[name] === "down");
        if (down.length === 0) return c.json({ status: "ready", parts, outbox: size });
        const detail = `Down: ${down.join(", ")}`;
        return c.json({ status: "unavailable", detail, parts, outbox: size }, 503, { "Retry-After": "2" });
      },
    )
    .get(
      "/metrics",
      operation({
        action: "service.metrics",
        tag: TAG,
        summary: "Get the service metrics",
        description:
          "Prometheus text format, for administrators or with METRICS_TOKEN as bearer token. Omits metrics that are not available within " +
          "two seconds.",
        response: z.string(),
        produces: "text/plain",
        errorResponses: { 503: "The accounts database is unavailable, so the caller cannot be authorized" },
      }),
      async (c) => c.body(await scrape(), 200, { "Content-Type": CONTENT_TYPE }),
    )
    .get(
      "/.well-known/jwks.json",
      operation({
        action: "service.keys",
        tag: TAG,
        summary: "Get the public keys of the tokens",
        description: "A JSON Web Key Set. Other services can use it to verify the tokens of this service.",
        response: z.object({ keys: z.array(AnyObject) }),
      }),
      (c) => c.json(tokens.publicKeys(), 200, { "Cache-Control": "public, max-age=300" }),
    )
    .get(
      "/openapi.json",
      operation({
        action: "service.openapi",
        tag: TAG,
        summary: "Get the OpenAPI 3.1 document of the API",
        response: AnyObject,
      }),
      async (c) => c.json(await openApi()),
    )
    .get(
      "/asyncapi.json",
      operation({
        action: "service.asyncapi",
        tag: TAG,
        summary: "Get the AsyncAPI 3.0 document of the WebSockets",
        response: AnyObject,
      }),
      async (c) => c.json((await loadDocuments()).buildAsyncApi(routes(), new URL(c.req.url))),
    )
    .get(
      "/docs",
      operation({
        action: "service.docs",
        tag: "Pages",
        summary: "Get the API reference as a page",
        response: z.string(),
        produces: "text/html",
      }),
      async (c) => {
        docs ??= (await loadDocuments()).docsPage(await openApi());
        return c.html(docs);
      },
    )
    .get(
      "/docs/style.css",
      operation({
        action: "service.docs",
        tag: "Pages",
        summary: "Get the style of the API reference",
        response: z.string(),
        produces: "text/css",
        hidden: true,
      }),
      async (c) => {
        const { docsStyle } = await loadDocuments();
        const headers = { "Content-Type": "text/css; charset=utf-8", "Cache-Control": "public, max-age=300" };
        return c.body(docsStyle, 200, headers);
      },
    );
}
