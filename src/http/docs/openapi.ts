import * as z from "zod";
import { callersOf, isPublic } from "../../auth/permissions.ts";
import { ErrorResponse, HTTPValidationError } from "../../schemas/primitives.ts";
import type { DeclaredRoute, ErrorBody, InputPlace, OperationSpec } from "../route-registry.ts";

/** The OpenAPI 3.1 document, built from the declared routes and the schemas that validate their inputs. */

export const API_VERSION = "1.0.0";

export type JsonSchema = z.core.JSONSchema.JSONSchema;

export interface OpenApiOperation {
  operationId: string;
  summary: string;
  description: string;
  tags: string[];
  security: Record<string, string[]>[];
  parameters?: {
    name: string;
    in: "query" | "path" | "header";
    required: boolean;
    description?: string;
    schema: JsonSchema;
  }[];
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
  const usedIds = new Set<string>();
  for (const route of routes) {
    if (route.operation.hidden) continue;
    const path = route.path.replace(/:(\w+)/g, "{$1}");
    paths[path] ??= {};
    const operationId = operationIdOf(route, usedIds);
    usedIds.add(operationId);
    const operation = toOperation(route, (schema, io) => toSchema(schema, io, components));
    paths[path][route.method.toLowerCase()] = { operationId, ...operation };
  }
  return {
    openapi: "3.1.0",
    info: {
      title: "Multi-Access Network Controller",
      version: API_VERSION,
      description: "One service to operate 5G, WiFi and LiFi access points together.",
    },
    paths,
    components: {
      schemas: components,
      securitySchemes: { bearer: { type: "http", scheme: "bearer", bearerFormat: "JWT" } },
    },
  };
}

/** Returns the action as an operation id. Appends the last path segment, or the whole path, if other operations have the same action. */
function operationIdOf({ path, operation: { action } }: DeclaredRoute, usedIds: ReadonlySet<string>): string {
  const camelCase = (text: string) => text.replace(/[^A-Za-z0-9]+(.)/g, (_, letter: string) => letter.toUpperCase());
  const ids = [action, `${action}.${path.split("/").at(-1)}`, `${action}${path}`].map(camelCase);
  return ids.find((id) => !usedIds.has(id)) ?? action;
}

type Convert = (schema: z.ZodType, io: "input" | "output") => JsonSchema;

function toOperation(
  { path, operation, inputs }: DeclaredRoute,
  convert: Convert,
): Omit<OpenApiOperation, "operationId"> {
  const open = isPublic(operation.action);
  const json = (schema: z.ZodType) => ({ "application/json": { schema: convert(schema, "output") } });
  const error = (description: string) => ({ description, content: json(ErrorResponse) });
  const errorBody = ({ description, schema }: ErrorBody) => ({
    description,
    ...(schema !== undefined && { content: json(schema) }),
  });
  const parameters = [
    ...parametersOf(inputs.param, "path", convert),
    ...parametersOf(inputs.query, "query", convert),
    ...parametersOf(inputs.header, "header", convert),
  ];
  const requestBody = bodyOf(inputs, convert) ?? rawBody(operation.consumes);
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
        ? {
            101: { description: "Upgraded to a WebSocket; see /asyncapi.json" },
            426: error("The request is not a WebSocket handshake"),
          }
        : successOf(operation, json)),
      ...(!open && {
        401: error("The token is missing or invalid"),
        403: error("The caller is not allowed to do this"),
      }),
      ...(requestBody !== undefined && { 400: error("The body cannot be read"), 413: error("The body is too large") }),
      ...((requestBody !== undefined || parameters.length > 0) && {
        422: { description: "Invalid input", content: json(HTTPValidationError) },
      }),
      ...(path.startsWith("/api/") && {
        503: error("A store or the broker is unavailable. Retry after the time in Retry-After"),
      }),
      ...Object.fromEntries(
        Object.entries(operation.errorResponses ?? {}).map(([status, body]) => [
          status,
          typeof body === "string" ? error(body) : errorBody(body),
        ]),
      ),
    },
  };
}

type Responses = OpenApiOperation["responses"];
type Content = Record<string, { schema: JsonSchema }>;

function successOf({ isEmpty, produces, response }: OperationSpec, json: (schema: z.ZodType) => Content): Responses {
  if (isEmpty) return { 204: { description: "Success" } };
  if (produces === null) return { 200: { description: "Success" } };
  const content: Content = produces === undefined ? json(response) : asText([produces].flat());
  return { 200: { description: "Success", content } };
}

function parametersOf(schema: z.ZodType | undefined, place: "query" | "path" | "header", convert: Convert) {
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
  csv: ["text/csv"],
  form: ["application/x-www-form-urlencoded", "multipart/form-data"],
};

const asText = (types: readonly string[]) =>
  Object.fromEntries(types.map((type) => [type, { schema: { type: "string" as const } }]));

function bodyOf(inputs: DeclaredRoute["inputs"], convert: Convert): OpenApiOperation["requestBody"] {
  for (const place of ["json", "csv", "form"] as const) {
    const schema = inputs[place];
    if (schema === undefined) continue;
    const content = Object.fromEntries(
      (MEDIA_TYPES[place] ?? []).map((type) => [type, { schema: convert(schema, "input") }]),
    );
    return { required: true, content };
  }
  return undefined;
}

/** Returns a body that the operation decodes itself. */
function rawBody(consumes: readonly string[] | undefined): OpenApiOperation["requestBody"] {
  if (consumes === undefined) return undefined;
  const schema: JsonSchema = { type: "string", format: "binary" };
  return { required: true, content: Object.fromEntries(consumes.map((type) => [type, { schema }])) };
}

/** Converts a schema. Collects schemas with an id in `components`, and refers to them. */
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
