import { zValidator } from "@hono/zod-validator";
import type { MiddlewareHandler } from "hono";
import * as z from "zod";
import { Invalid } from "../errors.ts";
import type { AppEnv } from "./context.ts";
import { describeInput } from "./described.ts";
import { MISSING, toValidationItems } from "./faults.ts";
import { parseJson } from "./json.ts";

/** Input against its schema. Each of these is a middleware that also carries its schema to the OpenAPI document. */

type Validates<Target extends "json" | "form" | "query" | "param", S extends z.ZodType> = MiddlewareHandler<
  AppEnv,
  string,
  { in: { [T in Target]: z.input<S> }; out: { [T in Target]: z.output<S> } }
>;

const JSON_TYPE = /^application\/(?:[\w.-]+\+)?json\s*(?:;|$)/i;

/** A JSON body. Not zod-validator's own, which would parse twice and knows none of FastAPI's answers to odd bodies. */
export function body<S extends z.ZodType>(schema: S): Validates<"json", S> {
  return describeInput("json", schema, async function jsonBody(c, next) {
    const bytes = await c.req.arrayBuffer();
    if (bytes.byteLength === 0) throw new Invalid([{ loc: ["body"], ...MISSING }]);
    const contentType = c.req.header("Content-Type");
    // As in FastAPI: no content type is taken for JSON, another one for bytes, which are no object.
    const isJson = contentType === undefined || JSON_TYPE.test(contentType);
    const value = isJson ? parseJson(bytes) : "";
    const parsed = z.safeParse(schema, value);
    if (!parsed.success) throw new Invalid(toValidationItems("body", parsed.error, value));
    c.req.addValidatedData("json", parsed.data as object);
    await next();
  });
}

/** A form, URL-encoded or multipart. An empty field counts as absent, as in FastAPI. */
export function form<S extends z.ZodObject>(schema: S): Validates<"form", S> {
  const withoutEmpty = (fields: object) =>
    Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== ""));
  const validator = zValidator("form", schema, refuse("body", withoutEmpty), {
    validationFunction: (_, fields) => z.safeParse<z.ZodType>(schema, withoutEmpty(fields)) as never,
  });
  return describeInput("form", schema, validator as unknown as Validates<"form", S>);
}

export function query<S extends z.ZodObject>(schema: S): Validates<"query", S> {
  return describeInput(
    "query",
    schema,
    zValidator("query", schema, refuse("query")) as unknown as Validates<"query", S>,
  );
}

export function path<S extends z.ZodObject>(schema: S): Validates<"param", S> {
  return describeInput(
    "param",
    schema,
    zValidator("param", schema, refuse("path")) as unknown as Validates<"param", S>,
  );
}

type Outcome = { success: true } | { success: false; error: z.core.$ZodError; data: unknown };

function refuse(place: "body" | "query" | "path", seen: (data: object) => unknown = (data) => data) {
  return (outcome: Outcome): void => {
    if (!outcome.success) throw new Invalid(toValidationItems(place, outcome.error, seen(outcome.data as object)));
  };
}
