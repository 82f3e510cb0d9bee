import type { MiddlewareHandler } from "hono";
import type { AppEnv } from "./context.ts";

/**
 * Gives each request an id, and sets the headers that every response has, errors included. It sets them once, on the finished response:
 * each header is a call into the platform, and together they cost as much as the rest of a small request.
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
    const requestId = validRequestId(c.req.header("X-Request-Id")) ?? crypto.randomUUID();
    c.set("requestId", requestId);
    await next();
    const { headers } = c.res;
    for (const [name, value] of constant) headers.set(name, value);
    headers.set("X-Request-Id", requestId);
    // Not every platform sets it. Pages and agents use it to detect that their clock is wrong.
    headers.set("Date", new Date().toUTCString());
    // Responses contain tokens and keys. Pages and public documents set their own value.
    if (!headers.has("Cache-Control")) headers.set("Cache-Control", "no-store");
  };
}

/** Returns the caller's own request id, if it is safe to log. */
const validRequestId = (given: string | undefined): string | undefined =>
  given !== undefined && /^[\w=-]{1,64}$/.test(given) ? given : undefined;
