import type { MiddlewareHandler } from "hono";
import type * as z from "zod";
import type { Action } from "../auth/permissions.ts";
import type { WebSocketFormat } from "../schemas/stream-protocol.ts";

/**
 * The declarations of routes. A route is declared once, as middleware. Authorization, validation, the OpenAPI document and the tests all
 * read that declaration from the registered handlers.
 */

export interface OperationSpec {
  action: Action;
  summary: string;
  description?: string;
  tag: string;
  /** Schema of the response with status 200. */
  response: z.ZodType;
  /** Responds with a WebSocket. A browser cannot set headers there, and offers its token as a protocol instead. */
  webSocket?: WebSocketFormat;
  /** Content type of the response, if it is not JSON. */
  produces?: string;
  /** Not in the OpenAPI document: belongs to a page, not to the API. */
  hidden?: true;
  /** Further statuses that this operation responds with, and their meaning. */
  errorResponses?: Record<number, string>;
}

export type InputPlace = "json" | "csv" | "form" | "query" | "param" | "header";

/** A declared route: its operation, and the schemas of its inputs by place. */
export interface DeclaredRoute {
  method: string;
  path: string;
  operation: OperationSpec;
  inputs: Partial<Record<InputPlace, z.ZodType>>;
}

interface Registration {
  operation?: OperationSpec;
  input?: { place: InputPlace; schema: z.ZodType };
}

const registrations = new WeakMap<object, Registration>();

export function registerOperation<H extends object>(operation: OperationSpec, handler: H): H {
  registrations.set(handler, { operation });
  return handler;
}

export function registerInput<H extends object>(place: InputPlace, schema: z.ZodType, handler: H): H {
  registrations.set(handler, { input: { place, schema } });
  return handler;
}

interface RoutedHandler {
  method: string;
  path: string;
  handler: MiddlewareHandler | object;
}

/** Returns the routes that the handlers of an app declare. */
export function declaredRoutes(handlers: readonly RoutedHandler[]): DeclaredRoute[] {
  const routes = new Map<string, DeclaredRoute>();
  for (const { method, path, handler } of handlers) {
    const registration = registrations.get(handler);
    const key = `${method} ${path}`;
    if (registration?.operation !== undefined) {
      if (routes.has(key)) throw new Error(`${key} is declared twice`);
      routes.set(key, { method, path, operation: registration.operation, inputs: {} });
    }
    const route = routes.get(key);
    if (registration?.input !== undefined && route !== undefined) {
      route.inputs[registration.input.place] = registration.input.schema;
    }
  }
  return [...routes.values()];
}
