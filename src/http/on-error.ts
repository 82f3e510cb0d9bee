import { HTTPException } from "hono/http-exception";
import type { ContentfulStatusCode } from "hono/utils/http-status";
import { DomainError, type ErrorCode, Invalid, Unavailable } from "../lib/errors.ts";
import { describeError, log } from "../lib/log.ts";
import type { AppContext } from "./context.ts";

/** The one table from what went wrong to what the caller is told. */
const STATUS: Record<ErrorCode, ContentfulStatusCode> = {
  malformed: 400,
  invalid: 422,
  not_authenticated: 401,
  not_allowed: 403,
  not_found: 404,
  duplicate: 409,
  conflict: 409,
  too_large: 413,
  upgrade_required: 426,
  too_many: 429,
  unavailable: 503,
};

export function onError(error: Error, c: AppContext): Response {
  const requestId = c.get("requestId");
  if (error instanceof DomainError) {
    if (error.code === "not_authenticated") c.header("WWW-Authenticate", "Bearer");
    if (error.code === "upgrade_required") {
      c.header("Upgrade", "websocket");
      c.header("Sec-WebSocket-Version", "13");
    }
    if ("retryAfterSeconds" in error && error.retryAfterSeconds !== undefined) {
      c.header("Retry-After", String(error.retryAfterSeconds));
    }
    if (error instanceof Unavailable) {
      log.warn("unavailable", { request_id: requestId, error: describeError(error) });
    }
    return c.json({ detail: error instanceof Invalid ? error.items : error.message }, STATUS[error.code]);
  }
  // Hono's own, thrown for a form that cannot be read.
  if (error instanceof HTTPException && error.status === 400) {
    return c.json({ detail: "There was an error parsing the body" }, 400);
  }
  log.error("bug", {
    request_id: requestId,
    error: describeError(error),
    stack: framesOf(error),
  });
  return c.json({ detail: "Internal Server Error" }, 500);
}

/** The frames alone: what stands above them may quote the values of a query. */
function framesOf({ stack = "" }: Error): string {
  const frames = stack.split("\n").filter((line) => /^\s+at /.test(line));
  return frames.slice(0, 8).join("\n");
}
