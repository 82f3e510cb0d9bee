import type { Context } from "hono";
import type { Actor } from "../auth/identity.ts";
import type { Action } from "../auth/permissions.ts";

/** What travels with a request through Hono. */
export interface AppEnv {
  Variables: {
    /** Names the request in the log, in the answer and in the audit trail. */
    requestId: string;
    /** Set by `operation()`; for requests that match none there is none. */
    operation: Action;
    /** Set by `operation()` for every operation that is not public. */
    actor: Actor;
    /** Set by a successful login: who the new token is for, for the log. */
    loggedIn: string;
  };
}

export type AppContext = Context<AppEnv>;
