import type { MiddlewareHandler } from "hono";
import { log } from "../lib/log.ts";
import type { AppEnv } from "./context.ts";

/** Counts a finished request by its operation. Paths are not counted: their number is unlimited. */
export type CountRequest = (operation: string | undefined, status: number, startedMs: number, endedMs: number) => void;

/** Counts and logs each request. Never logs the query, headers or bodies: each may contain a secret. */
export function requestLog(logged: "all" | "failures", count: CountRequest): MiddlewareHandler<AppEnv> {
  return async function requestLog(c, next) {
    const startedMs = Date.now();
    await next();
    const { status } = c.res;
    const endedMs = Date.now();
    count(c.get("operation"), status, startedMs, endedMs);
    if (logged === "failures" && status < 500) return;
    const actor = c.get("actor");
    log.info("request", {
      request_id: c.get("requestId"),
      method: c.req.method,
      path: c.req.path,
      status,
      duration_ms: endedMs - startedMs,
      caller: actor === undefined ? c.get("loggedIn") : `${actor.kind}:${actor.name}`,
    });
  };
}
