import type { MiddlewareHandler } from "hono";
import type { Authenticate } from "../auth/identity.ts";
import { authorize, isPublic } from "../auth/permissions.ts";
import { NotAuthenticated } from "../lib/errors.ts";
import type { AppEnv } from "./context.ts";
import { type OperationSpec, registerOperation } from "./route-registry.ts";

export type Operation = (description: OperationSpec) => MiddlewareHandler<AppEnv>;

/**
 * Declares an operation of the interface. It must be the first handler of its route: who calls is settled before anything of
 * the request is read.
 */
export function createOperation(authenticate: Authenticate): Operation {
  return (description) =>
    registerOperation(description, async function operation(c, next) {
      c.set("operation", description.action);
      if (!isPublic(description.action)) {
        const header = c.req.header("Authorization") ?? (description.webSocket && offeredToken(c.req.raw.headers));
        const identity = await authenticate(bearerToken(header || undefined));
        c.set("actor", { ...identity, requestId: c.get("requestId") });
        authorize(identity, description.action);
      }
      await next();
    } satisfies MiddlewareHandler<AppEnv>);
}

export const BEARER_PROTOCOL = "bearer.";

/** The token that a browser names among the protocols it offers, as a header would say it. */
function offeredToken(headers: Headers): string | undefined {
  const offered = (headers.get("Sec-WebSocket-Protocol") ?? "").split(",").map((protocol) => protocol.trim());
  const token = offered.find((protocol) => protocol.startsWith(BEARER_PROTOCOL))?.slice(BEARER_PROTOCOL.length);
  return token === undefined ? undefined : `Bearer ${token}`;
}

function bearerToken(header: string | undefined): string {
  const [scheme, token, ...rest] = (header ?? "").split(" ");
  if (scheme?.toLowerCase() !== "bearer" || token === undefined || token === "" || rest.length > 0) {
    throw new NotAuthenticated("Not authenticated");
  }
  return token;
}
