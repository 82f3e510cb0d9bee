import * as z from "zod";
import { callersOf, isPublic } from "../../auth/permissions.ts";
import { ErrorResponse, HTTPValidationError } from "../../schemas/errors.ts";
import type { DeclaredRoute, InputPlace } from "../route-registry.ts";

/** The OpenAPI 3.1 document, from the declared routes and the very schemas that validate them. */

export const API_VERSION = "1.0.0";

export type JsonSchema = z.core.JSONSchema.JSONSchema;

export interface OpenApiOperation {
  operationId: string;
  summary: string;
  description: string;
  tags: string[];
  security: Record<string, string[]>[];
  parameters?: { name: string; in: "query" | "path"; required: boolean; description?: string; schema: JsonSchema }[];
  requestBody?: { required: true; content: Record<string, { schema: JsonSchema }> };
  responses: Record<string, { description: string; content?: Record<string, { schema: JsonSchema }> }>;
}

export interface OpenApiDocument {
  openapi: "3.1.0";
  info: { title: string; version: string; description: string };
  paths: Record<string, Record<string, OpenApiOperation>>;
  components: { schemas: Record<string, JsonSchema>; securitySchemes: Record<string, object> };
}

export function buildOpenApi(routes: readonly DeclaredRoute[]): OpenApiDocument {
  const components: Record<string, JsonSchema> = {};
  const paths: OpenApiDocument["paths"] = {};
  const taken = new Set<string>();
  for (const route of routes) {
    if (route.operation.hidden) continue;
    const path = route.path.replace(/:(\w+)/g, "{$1}");
    paths[path] ??= {};
    const operationId = idOf(route, taken);
    taken.add(operationId);
    const operation = toOperation(route, (schema, io) => toSchema(schema, io, components));
    paths[path][route.method.toLowerCase()] = { operationId, ...operation };
  }
  return {
    openapi: "3.1.0",
    info: {
      title: "Multi-Access Network Controller",
      version: API_VERSION,
      description: "One service through which an operator runs 5G, WiFi and LiFi access points together.",
    },
    paths,
    components: {
      schemas: components,
      securitySchemes: { bearer: { type: "http", scheme: "bearer", bearerFormat: "JWT" } },
    },
  };
}

/** Named by its action; where several share one, the end of the path tells the further ones apart. */
function idOf({ path, operation: { action } }: DeclaredRoute, taken: ReadonlySet<string>): string {
  const joined = (text: string) => text.replace(/[^A-Za-z0-9]+(.)/g, (_, letter: string) => letter.toUpperCase());
  const id = joined(action);
  return taken.has(id) ? joined(`${action}.${path.split("/").at(-1)}`) : id;
}

type Convert = (schema: z.ZodType, io: "input" | "output") => JsonSchema;

function toOperation(
  { path, operation, inputs }: DeclaredRoute,
  convert: Convert,
): Omit<OpenApiOperation, "operationId"> {
  const open = isPublic(operation.action);
  const json = (schema: z.ZodType) => ({ "application/json": { schema: convert(schema, "output") } });
  const problem = (description: string) => ({ description, content: json(ErrorResponse) });
  const parameters = [...parametersOf(inputs.param, "path", convert), ...parametersOf(inputs.query, "query", convert)];
  const requestBody = bodyOf(inputs, convert);
  return {
    summary: operation.summary,
    description: [operation.description, open ? undefined : `Callers: ${callersOf(operation.action).join(", ")}.`]
      .filter((text) => text !== undefined)
      .join("\n\n"),
    tags: [operation.tag],
    security: open ? [] : [{ bearer: [] }],
    ...(parameters.length > 0 && { parameters }),
    ...(requestBody !== undefined && { requestBody }),
    responses: {
      ...(operation.webSocket !== undefined
        ? { 101: { description: "A WebSocket; see /asyncapi.json" }, 426: problem("Not a request for a WebSocket") }
        : {
            200: {
              description: "Success",
              content:
                operation.produces === undefined
                  ? json(operation.answer)
                  : { [operation.produces]: { schema: { type: "string" } } },
            },
          }),
      ...(!open && { 401: problem("No token, or not a valid one"), 403: problem("Not allowed") }),
      ...(requestBody !== undefined && { 400: problem("Body that cannot be read"), 413: problem("Body too large") }),
      ...((requestBody !== undefined || parameters.length > 0) && {
        422: { description: "Invalid input", content: json(HTTPValidationError) },
      }),
      ...(path.startsWith("/api/") && {
        503: problem("A store or the broker is away; Retry-After says when to try again"),
      }),
      ...Object.fromEntries(
        Object.entries(operation.errorResponses ?? {}).map(([status, description]) => [status, problem(description)]),
      ),
    },
  };
}

function parametersOf(schema: z.ZodType | undefined, place: "query" | "path", convert: Convert) {
  if (schema === undefined) return [];
  const { properties = {}, required = [] } = convert(schema, "input");
  return Object.entries(properties).map(([name, property]) => {
    const { description, ...rest } = typeof property === "object" ? property : {};
    return {
      name,
      in: place,
      required: place === "path" || required.includes(name),
      ...(description !== undefined && { description }),
      schema: rest,
    };
  });
}

const MEDIA_TYPES: Partial<Record<InputPlace, string[]>> = {
  json: ["application/json"],
  form: ["application/x-www-form-urlencoded", "multipart/form-data"],
};

function bodyOf(inputs: DeclaredRoute["inputs"], convert: Convert): OpenApiOperation["requestBody"] {
  for (const place of ["json", "form"] as const) {
    const schema = inputs[place];
    if (schema === undefined) continue;
    const content = Object.fromEntries(
      (MEDIA_TYPES[place] ?? []).map((type) => [type, { schema: convert(schema, "input") }]),
    );
    return { required: true, content };
  }
  return undefined;
}

/** The schema in place, or a reference to it where it has a name; named ones are collected in `components`. */
export function toSchema(
  schema: z.ZodType,
  io: "input" | "output",
  components: Record<string, JsonSchema>,
  target: "draft-2020-12" | "draft-07" = "draft-2020-12",
): JsonSchema {
  const { $schema: _, $defs, definitions, ...root } = z.toJSONSchema(schema, { io, target, unrepresentable: "any" });
  const named = { ...$defs, ...(definitions as typeof $defs) };
  const relocated = (node: JsonSchema): JsonSchema =>
    JSON.parse(
      JSON.stringify(node).replaceAll(/"#\/(?:\$defs|definitions)\//g, '"#/components/schemas/'),
    ) as JsonSchema;
  for (const [name, definition] of Object.entries(named)) components[name] = relocated(definition);
  return relocated(root);
}
