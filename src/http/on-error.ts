import { HTTPException } from "hono/http-exception";
import type { ContentfulStatusCode } from "hono/utils/http-status";
import { DomainError, type ErrorCode, Invalid, Unavailable, type ValidationItem } from "../lib/errors.ts";
import { describeError, log } from "../lib/log.ts";
import type { AppContext } from "./context.ts";

/** The only mapping from error codes to statuses. */
const STATUS: Record<ErrorCode, ContentfulStatusCode> = {
  malformed: 400,
  invalid: 422,
  not_authenticated: 401,
  not_allowed: 403,
  not_found: 404,
  duplicate: 409,
  conflict: 409,
  too_large: 413,
  unsupported: 415,
  upgrade_required: 426,
  too_many: 429,
  unavailable: 503,
};

/** Converts any error that a handler throws to a response. */
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
      log.warn("dependency unavailable", { request_id: requestId, error: describeError(error) });
    }
    return c.json({ detail: error instanceof Invalid ? locate(error) : error.message }, STATUS[error.code]);
  }
  // Hono throws this for a form that it cannot read.
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

const PLACES: ReadonlySet<string | number | undefined> = new Set(["body", "query", "path", "header"]);

/** Prefixes the paths of a service's field errors with their place. Those of `http/validation.ts` have it already. */
const locate = ({ items, place }: Invalid): ValidationItem[] =>
  items.map((item) => (PLACES.has(item.loc[0]) ? item : { ...item, loc: [place, ...item.loc] }));

/** Returns the stack frames only. The message above them may quote values of a query. */
function framesOf({ stack = "" }: Error): string {
  const frames = stack.split("\n").filter((line) => /^\s+at /.test(line));
  return frames.slice(0, 8).join("\n");
}
