import { zValidator } from "@hono/zod-validator";
import type { MiddlewareHandler } from "hono";
import { bodyLimit } from "hono/body-limit";
import type * as z from "zod";
import { encodeJson, type JsonText } from "../lib/encoding.ts";
import { Invalid, Malformed, TooLarge } from "../lib/errors.ts";
import { MISSING, parse, toValidationItems } from "../lib/field-errors.ts";
import type { AppContext, AppEnv } from "./context.ts";
import { parseJson } from "./json.ts";
import { type InputPlace, registerInput } from "./route-registry.ts";

/** Middleware that validates one input of a request. Each also registers its schema for the OpenAPI document. */

type Validator<Target extends Exclude<InputPlace, "csv">, S extends z.ZodType> = MiddlewareHandler<
  AppEnv,
  string,
  { in: { [T in Target]: z.input<S> }; out: { [T in Target]: z.output<S> } }
>;

const MAX_BODY_BYTES = 1024 * 1024;

const limitStreamedBody = bodyLimit({
  maxSize: MAX_BODY_BYTES,
  onError: () => {
    throw new TooLarge();
  },
});

/** Throws `TooLarge` for a large body. Called before reading a body: bodies that no handler reads are not limited. */
export async function limitBody(c: AppContext): Promise<void> {
  const { headers } = c.req.raw;
  const length = headers.get("Content-Length");
  // Inspects the body only if its length is not declared: this is slower.
  if (length === null || headers.has("Transfer-Encoding")) await limitStreamedBody(c, async () => {});
  else if (Number(length) > MAX_BODY_BYTES) throw new TooLarge();
}

const JSON_TYPE = /^application\/(?:[\w.-]+\+)?json\s*(?:;|$)/i;

/** Validates a JSON body. zod-validator would parse it twice, and does not treat unusual bodies as FastAPI does. */
export function body<S extends z.ZodType>(schema: S): Validator<"json", S> {
  return registerInput("json", schema, async function jsonBody(c, next) {
    const { value } = await readJson(c, schema);
    c.req.addValidatedData("json", value as object);
    await next();
  });
}

type TextValidator<S extends z.ZodType> = MiddlewareHandler<
  AppEnv,
  string,
  { in: { json: z.input<S> }; out: { json: { value: z.output<S>; text: JsonText } } }
>;

/** Validates a JSON body like `body`, and passes the caller's text on as well, for operations that forward it unchanged. */
export function jsonText<S extends z.ZodType>(schema: S): TextValidator<S> {
  return registerInput("json", schema, async function jsonTextBody(c, next) {
    c.req.addValidatedData("json", await readJson(c, schema));
    await next();
  });
}

async function readJson<S extends z.ZodType>(
  c: AppContext,
  schema: S,
): Promise<{ value: z.output<S>; text: JsonText }> {
  await limitBody(c);
  const bytes = await c.req.arrayBuffer();
  if (bytes.byteLength === 0) throw new Invalid([{ loc: ["body"], ...MISSING }]);
  const contentType = c.req.header("Content-Type");
  // As in FastAPI: a body without a content type is JSON, one with another type is bytes, which are not an object.
  const isJson = contentType === undefined || JSON_TYPE.test(contentType);
  const { value, text } = isJson ? parseJson(bytes) : { value: "", text: encodeJson("") };
  if (value === null) throw new Invalid([{ loc: ["body"], ...MISSING }]);
  return { value: valid("body", parse(schema, value)), text };
}

const CSV_TYPE = /^text\/csv\s*(?:;|$)/i;
const utf8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: false });

/** Validates a CSV body. A body without a content type is CSV. */
export function csv<S extends z.ZodType>(schema: S): Validator<"json", S> {
  return registerInput("csv", schema, async function csvBody(c, next) {
    await limitBody(c);
    const bytes = await c.req.arrayBuffer();
    if (bytes.byteLength === 0) throw new Invalid([{ loc: ["body"], ...MISSING }]);
    const contentType = c.req.header("Content-Type");
    if (contentType !== undefined && !CSV_TYPE.test(contentType)) {
      const msg = "Value error, the content type must be text/csv";
      throw new Invalid([{ loc: ["header", "Content-Type"], msg, type: "value_error" }]);
    }
    // Hono has no target for other bodies than JSON and forms.
    c.req.addValidatedData("json", valid("body", parse(schema, decode(bytes))) as object);
    await next();
  });
}

function decode(bytes: ArrayBuffer): string {
  try {
    return utf8.decode(bytes);
  } catch {
    throw new Malformed("There was an error parsing the body");
  }
}

/** Validates a form, URL-encoded or multipart. An empty field counts as absent, as in FastAPI. */
export function form<S extends z.ZodObject>(schema: S): Validator<"form", S> {
  const fields = validated("form", "body", schema, (fields) =>
    Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== "")),
  );
  return registerInput("form", schema, async function formBody(c, next) {
    await limitBody(c);
    return await fields(c, next);
  });
}

export const query = <S extends z.ZodObject>(schema: S): Validator<"query", S> => validated("query", "query", schema);
export const path = <S extends z.ZodObject>(schema: S): Validator<"param", S> => validated("param", "path", schema);

/** Validates the headers that a schema names, in the spelling of the schema. */
export function header<S extends z.ZodObject>(schema: S): Validator<"header", S> {
  const names = Object.keys(schema.shape);
  return registerInput("header", schema, async function headers(c, next) {
    const values = Object.fromEntries(names.map((name) => [name, c.req.header(name)]));
    c.req.addValidatedData("header", valid("header", parse(schema, values)) as object);
    await next();
  });
}

function validated<Target extends "form" | "query" | "param", S extends z.ZodObject>(
  target: Target,
  place: string,
  schema: S,
  prepare: (fields: object) => object = (fields) => fields,
): Validator<Target, S> {
  const throwIfInvalid = (outcome: Parsed<unknown>): void => void valid(place, outcome);
  const validator = zValidator(target, schema, throwIfInvalid, {
    validationFunction: (_, fields) => parse<z.ZodType>(schema, prepare(fields)) as never,
  });
  return registerInput(target, schema, validator as unknown as Validator<Target, S>);
}

type Parsed<T> = { success: true; data: T } | { success: false; error: z.core.$ZodError };

/** Returns the parsed input. Throws `Invalid` with paths that begin with the place. */
function valid<T>(place: string, parsed: Parsed<T>): T {
  if (!parsed.success) throw new Invalid(toValidationItems(place, parsed.error));
  return parsed.data;
}
