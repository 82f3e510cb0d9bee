import type { MiddlewareHandler } from "hono";
import { log } from "../log.ts";
import type { AppEnv } from "./context.ts";

/** One line per request. Neither query nor headers nor bodies: each may carry a secret. */
export function requestLog(which: "all" | "failures"): MiddlewareHandler<AppEnv> {
  return async function requestLog(c, next) {
    const startedMs = Date.now();
    await next();
    if (which === "failures" && c.res.status < 500) return;
    const actor = c.get("actor");
    log.info("request", {
      request_id: c.get("requestId"),
      method: c.req.method,
      path: c.req.path,
      status: c.res.status,
      duration_ms: Date.now() - startedMs,
      caller: actor === undefined ? undefined : `${actor.kind}:${actor.name}`,
    });
  };
}
