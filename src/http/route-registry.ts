import type { MiddlewareHandler } from "hono";
import type * as z from "zod";
import type { Action } from "../auth/permissions.ts";
import type { StreamFormat } from "../schemas/stream-protocol.ts";

/**
 * What a route's middleware says about the route. A route is declared once, where it is registered; the guard, the
 * validation, the OpenAPI document and the tests all read that one declaration off the registered handlers.
 */

export interface OperationSpec {
  action: Action;
  summary: string;
  description?: string;
  tag: string;
  answer: z.ZodType;
  /** Answers with a WebSocket. A browser cannot set headers there, and names its token among the protocols that it offers. */
  webSocket?: StreamFormat;
  /** The answer's content type where it is not JSON. */
  produces?: string;
  /** Left out of the document: part of a page, not of the interface. */
  hidden?: true;
  /** Statuses that the declaration alone does not imply, and what each means. */
  errorResponses?: Record<number, string>;
}

export type InputPlace = "json" | "form" | "query" | "param";

export interface Description {
  operation?: OperationSpec;
  input?: { place: InputPlace; schema: z.ZodType };
}

const descriptions = new WeakMap<object, Description>();

export function registerOperation<H extends object>(operation: OperationSpec, handler: H): H {
  descriptions.set(handler, { operation });
  return handler;
}

export function registerInput<H extends object>(place: InputPlace, schema: z.ZodType, handler: H): H {
  descriptions.set(handler, { input: { place, schema } });
  return handler;
}

/** A declared route: its operation, and its inputs by place. */
export interface DeclaredRoute {
  method: string;
  path: string;
  operation: OperationSpec;
  inputs: Partial<Record<InputPlace, z.ZodType>>;
}

interface RegisteredHandler {
  method: string;
  path: string;
  handler: MiddlewareHandler | object;
}

export function declaredRoutes(registered: readonly RegisteredHandler[]): DeclaredRoute[] {
  const routes = new Map<string, DeclaredRoute>();
  for (const { method, path, handler } of registered) {
    const description = descriptions.get(handler);
    const key = `${method} ${path}`;
    if (description?.operation !== undefined) {
      if (routes.has(key)) throw new Error(`${key} is declared twice`);
      routes.set(key, { method, path, operation: description.operation, inputs: {} });
    }
    const route = routes.get(key);
    if (description?.input !== undefined && route !== undefined) {
      route.inputs[description.input.place] = description.input.schema;
    }
  }
  return [...routes.values()];
}
