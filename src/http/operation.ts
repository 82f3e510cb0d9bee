import type { MiddlewareHandler } from "hono";
import type { Authenticate } from "../auth/identity.ts";
import { authorize, isPublic } from "../auth/permissions.ts";
import { NotAuthenticated } from "../lib/errors.ts";
import type { AppEnv } from "./context.ts";
import { type OperationSpec, registerOperation } from "./route-registry.ts";

export type Operation = (spec: OperationSpec) => MiddlewareHandler<AppEnv>;

/**
 * Returns a function that declares an operation of the API. Its handler must be the first of the route: it authenticates and authorizes
 * the caller before anything of the request is read.
 */
export function createOperation(authenticate: Authenticate): Operation {
  return (spec) =>
    registerOperation(spec, async function operation(c, next) {
      c.set("operation", spec.action);
      if (!isPublic(spec.action)) {
        const header = c.req.header("Authorization") ?? (spec.webSocket && tokenInProtocols(c.req.raw.headers));
        const token = bearerToken(header || undefined);
        const currentActor = async () => ({ ...(await authenticate(token)), requestId: c.get("requestId") });
        const actor = await currentActor();
        c.set("actor", actor);
        c.set("currentActor", currentActor);
        authorize(actor, spec.action);
      }
      await next();
    } satisfies MiddlewareHandler<AppEnv>);
}

export const BEARER_PROTOCOL = "bearer.";

/** Returns the token that a browser offers as a WebSocket protocol, in the form of an `Authorization` header. */
function tokenInProtocols(headers: Headers): string | undefined {
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
