import { Hono } from "hono";
import * as z from "zod";
import type { AppEnv } from "../http/context.ts";
import type { AsyncApiDocument } from "../http/docs/asyncapi.ts";
import type { OpenApiDocument } from "../http/docs/openapi.ts";
import type { Operation } from "../http/operation.ts";
import { withDeadline } from "../lib/deadline.ts";
import { CONTENT_TYPE } from "../monitoring/exposition.ts";
import type { Services } from "../services.ts";

const TAG = "Service";
const OUTBOX_MS = 1_000;
const PartState = z.enum(["up", "down"]);
const OutboxSize = z.object({
  messages: z.int().describe("For the broker, and not known to have arrived."),
  oldest_ms: z.int().describe("How long the oldest has waited to be published."),
});

/** Nothing where the store is away, which is said elsewhere. */
async function sizeOf(outbox: Services["outbox"]): Promise<z.output<typeof OutboxSize> | undefined> {
  const state = await withDeadline(OUTBOX_MS, () => outbox.state()).catch(() => undefined);
  return state && { messages: state.messages, oldest_ms: state.oldestMs };
}

/** The service about itself: is it alive, is it ready, what can it do. */
export function serviceRoutes(
  operation: Operation,
  { health, outbox, scrape, tokens }: Pick<Services, "health" | "outbox" | "scrape" | "tokens">,
  openApi: () => OpenApiDocument,
  asyncApi: (url: URL) => AsyncApiDocument,
) {
  return new Hono<AppEnv>()
    .get(
      "/healthz",
      operation({
        action: "service.health",
        tag: TAG,
        summary: "Is the service alive?",
        answer: z.object({ status: z.literal("ok") }),
      }),
      (c) => c.json({ status: "ok" }),
    )
    .get(
      "/readyz",
      operation({
        action: "service.ready",
        tag: TAG,
        summary: "Can the service do its work?",
        description: "Asks each part that it needs, one second at most. With 503 the answer says which part is down.",
        answer: z.object({
          status: z.enum(["ready", "unavailable"]),
          parts: z.record(z.string(), PartState),
          outbox: OutboxSize.optional(),
        }),
        errorResponses: { 503: "A part is down" },
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
        summary: "The service's own figures",
        description:
          "In Prometheus' text format, for administrators or with METRICS_TOKEN as bearer. What cannot be had within two seconds is left out.",
        answer: z.string(),
        produces: "text/plain",
        errorResponses: { 503: "The accounts database is away, and with it who is an administrator" },
      }),
      async (c) => c.body(await scrape(), 200, { "Content-Type": CONTENT_TYPE }),
    )
    .get(
      "/.well-known/jwks.json",
      operation({
        action: "service.keys",
        tag: TAG,
        summary: "Public keys of the tokens",
        description: "A JSON Web Key Set. Whoever trusts this service can check its tokens with it.",
        answer: z.object({ keys: z.array(z.record(z.string(), z.unknown())) }),
      }),
      (c) => c.json(tokens.publicKeys(), 200, { "Cache-Control": "public, max-age=300" }),
    )
    .get(
      "/openapi.json",
      operation({
        action: "service.openapi",
        tag: TAG,
        summary: "This interface as an OpenAPI 3.1 document",
        answer: z.record(z.string(), z.unknown()),
      }),
      (c) => c.json(openApi()),
    )
    .get(
      "/asyncapi.json",
      operation({
        action: "service.asyncapi",
        tag: TAG,
        summary: "The WebSockets of jobs as an AsyncAPI 3.0 document",
        answer: z.record(z.string(), z.unknown()),
      }),
      (c) => c.json(asyncApi(new URL(c.req.url))),
    );
}
