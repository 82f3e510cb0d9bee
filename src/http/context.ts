import type { Context } from "hono";
import type { Actor } from "../auth/identity.ts";
import type { Action } from "../auth/permissions.ts";
import { describeError, log } from "../lib/log.ts";

/** Variables that Hono carries through the handlers of one request. */
export interface AppEnv {
  Variables: {
    /** Identifies the request in the log, in the response and in the audit trail. */
    requestId: string;
    /** Set by `operation()`. Absent if no route matches the request. */
    operation: Action;
    /** Set by `operation()`, unless the operation is public. */
    actor: Actor;
    /** Authenticates the token again, for requests that last long. Set together with the actor. */
    currentActor: () => Promise<Actor>;
    /** Set by a successful login: the account of the new token, for the log. */
    loggedIn: string;
  };
}

export type AppContext = Context<AppEnv>;

/** Runs work that continues after the response. Logs its failure, because no caller awaits it. */
export function runAfterResponse(c: AppContext, work: () => Promise<void>): void {
  const logged = work().catch((error: unknown) => {
    log.error("background work failed", {
      request_id: c.get("requestId"),
      path: c.req.path,
      error: describeError(error),
    });
  });
  c.executionCtx.waitUntil(logged);
}
