import { zValidator } from "@hono/zod-validator";
import type { MiddlewareHandler } from "hono";
import { bodyLimit } from "hono/body-limit";
import type * as z from "zod";
import { Invalid, TooLarge } from "../lib/errors.ts";
import { MISSING, parse, toValidationItems } from "../lib/field-errors.ts";
import { encodeJson, type JsonText } from "../lib/json-text.ts";
import type { AppContext, AppEnv } from "./context.ts";
import { parseJson } from "./json.ts";
import { registerInput } from "./route-registry.ts";

/** Input against its schema. Each of these is a middleware that also carries its schema to the OpenAPI document. */

type Validates<Target extends "json" | "form" | "query" | "param", S extends z.ZodType> = MiddlewareHandler<
  AppEnv,
  string,
  { in: { [T in Target]: z.input<S> }; out: { [T in Target]: z.output<S> } }
>;

const MAX_BODY_BYTES = 1024 * 1024;

const bodyLimited = bodyLimit({
  maxSize: MAX_BODY_BYTES,
  onError: () => {
    throw new TooLarge();
  },
});

/** Asked by whoever reads a body. One that no operation reads is nobody's business, however large. */
async function limitBody(c: AppContext): Promise<void> {
  const { headers } = c.req.raw;
  const length = headers.get("Content-Length");
  // A body that says its length need not be looked at, which by itself costs something.
  if (length === null || headers.has("Transfer-Encoding")) await bodyLimited(c, async () => {});
  else if (Number(length) > MAX_BODY_BYTES) throw new TooLarge();
}

const JSON_TYPE = /^application\/(?:[\w.-]+\+)?json\s*(?:;|$)/i;

/** A JSON body. Not zod-validator's own, which would parse twice and knows none of FastAPI's answers to odd bodies. */
export function body<S extends z.ZodType>(schema: S): Validates<"json", S> {
  return registerInput("json", schema, async function jsonBody(c, next) {
    const { value } = await readJson(c, schema);
    c.req.addValidatedData("json", value as object);
    await next();
  });
}

type ValidatesText<S extends z.ZodType> = MiddlewareHandler<
  AppEnv,
  string,
  { in: { json: z.input<S> }; out: { json: { value: z.output<S>; text: JsonText } } }
>;

/** As `body`, and hands the handler the caller's text next to the parsed value, for operations that pass it on unchanged. */
export function jsonText<S extends z.ZodType>(schema: S): ValidatesText<S> {
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
  // As in FastAPI: no content type is taken for JSON, another one for bytes, which are no object.
  const isJson = contentType === undefined || JSON_TYPE.test(contentType);
  const { value, text } = isJson ? parseJson(bytes) : { value: "", text: encodeJson("") };
  if (value === null) throw new Invalid([{ loc: ["body"], ...MISSING }]);
  const parsed = parse(schema, value);
  if (!parsed.success) throw new Invalid(toValidationItems("body", parsed.error));
  return { value: parsed.data, text };
}

/** A form, URL-encoded or multipart. An empty field counts as absent, as in FastAPI. */
export function form<S extends z.ZodObject>(schema: S): Validates<"form", S> {
  const fields = validated("form", "body", schema, (fields) =>
    Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== "")),
  );
  return registerInput("form", schema, async function formBody(c, next) {
    await limitBody(c);
    return await fields(c, next);
  });
}

export const query = <S extends z.ZodObject>(schema: S): Validates<"query", S> => validated("query", "query", schema);
export const path = <S extends z.ZodObject>(schema: S): Validates<"param", S> => validated("param", "path", schema);

function validated<Target extends "form" | "query" | "param", S extends z.ZodObject>(
  target: Target,
  place: string,
  schema: S,
  prepare: (fields: object) => object = (fields) => fields,
): Validates<Target, S> {
  const refuse = (outcome: { success: true } | { success: false; error: z.core.$ZodError }): void => {
    if (!outcome.success) throw new Invalid(toValidationItems(place, outcome.error));
  };
  const validator = zValidator(target, schema, refuse, {
    validationFunction: (_, fields) => parse<z.ZodType>(schema, prepare(fields)) as never,
  });
  return registerInput(target, schema, validator as unknown as Validates<Target, S>);
}
