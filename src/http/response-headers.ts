import type { MiddlewareHandler } from "hono";
import type { AppEnv } from "./context.ts";

/**
 * What every answer says besides what it answers, errors included, and the name by which a request is found in the log. All of it is
 * set in one go when the answer is there: each header is a call into the platform, and together they cost as much as the rest of a
 * small request.
 */
export function responseHeaders(imageOrigins: readonly string[]): MiddlewareHandler<AppEnv> {
  const constant = Object.entries({
    "Content-Security-Policy": [
      "default-src 'none'",
      "style-src 'self'",
      "script-src 'self'",
      "connect-src 'self'",
      ["img-src 'self'", ...imageOrigins].join(" "),
      "base-uri 'none'",
      "frame-ancestors 'none'",
      "form-action 'none'",
    ].join("; "),
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "Strict-Transport-Security": "max-age=31536000; includeSubDomains",
    "X-Content-Type-Options": "nosniff",
  });
  return async function responseHeaders(c, next) {
    const requestId = asRequestId(c.req.header("X-Request-Id")) ?? crypto.randomUUID();
    c.set("requestId", requestId);
    await next();
    const { headers } = c.res;
    for (const [name, value] of constant) headers.set(name, value);
    headers.set("X-Request-Id", requestId);
    // Not every platform says it: pages and agents whose clocks are off can tell by it.
    headers.set("Date", new Date().toUTCString());
    // Answers carry tokens and keys; a page or a public document has said otherwise itself.
    if (!headers.has("Cache-Control")) headers.set("Cache-Control", "no-store");
  };
}

/** The caller's own name for its request, where it is one that may stand in a log. */
const asRequestId = (given: string | undefined): string | undefined =>
  given !== undefined && /^[\w=-]{1,64}$/.test(given) ? given : undefined;
