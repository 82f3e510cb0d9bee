import * as z from "zod";

/** Limit for the nesting of a JSON body. */
export const MAX_JSON_DEPTH = 32;

/** Returns an issue that zod does not have. `lib/field-errors.ts` copies its type and message to the response. */
export function customIssue(type: string, msg: string) {
  return { code: "custom" as const, message: msg, params: { type } };
}

/** Wraps a schema for objects. Reports other values as pydantic does for a `dict`; zod reports them as for a model. */
export function dictionary<S extends z.ZodType>(schema: S) {
  return z.preprocess((value, context) => {
    if (value === undefined || (typeof value === "object" && value !== null && !Array.isArray(value))) return value;
    context.addIssue(customIssue("dict_type", "Input should be a valid dictionary"));
    return z.NEVER;
  }, schema);
}

/** Accepts an integer or its text, for queries and forms. */
export function integer(schema: z.ZodInt | z.ZodNumber = z.int()) {
  return z.preprocess((value, context) => {
    if (typeof value === "string" && /^\s*[+-]?\d+\s*$/.test(value)) return Number(value);
    if (typeof value === "string") {
      const msg = "Input should be a valid integer, unable to parse string as an integer";
      context.addIssue(customIssue("int_parsing", msg));
      return z.NEVER;
    }
    if (value !== undefined && typeof value !== "number") {
      context.addIssue(customIssue("int_type", "Input should be a valid integer"));
      return z.NEVER;
    }
    if (typeof value === "number" && !Number.isInteger(value)) {
      const msg = "Input should be a valid integer, got a number with a fractional part";
      context.addIssue(customIssue("int_from_float", msg));
      return z.NEVER;
    }
    return value;
  }, schema);
}

const FLAGS = new Map<unknown, boolean>([
  ...["true", "1", "yes", "on"].map((text) => [text, true] as const),
  ...["false", "0", "no", "off"].map((text) => [text, false] as const),
]);

/** Accepts the text of a boolean, for queries. */
export const QueryFlag = z.preprocess((value, context) => {
  if (typeof value !== "string") return value;
  const flag = FLAGS.get(value.toLowerCase());
  if (flag !== undefined) return flag;
  const msg = "Input should be a valid boolean, unable to interpret input";
  context.addIssue(customIssue("bool_parsing", msg));
  return z.NEVER;
}, z.boolean());

/** An e-mail address as a login name. Trimmed and in lower case, so that each spelling means the same account. */
export const Email = z
  .string()
  .transform((text) => text.trim().toLowerCase())
  .pipe(z.email().max(254));

export const Password = z.string().min(8).max(128);

/** An `ap_id` or `app_name`. These become MQTT topic levels and path segments. */
export const Identifier = z
  .string()
  .regex(/^[A-Za-z0-9._:-]{1,64}$/)
  .refine((name) => name !== "." && name !== "..", "'.' and '..' are no names");

/** A description that people write. The database stores UTF-8, which has no lone surrogates. */
export const Description = z
  .string()
  .max(500)
  .refine((text) => text.isWellFormed(), "the text has half of a character (a lone surrogate)");

/** One page of a list. Without a limit, the whole list. */
export const Page = z.object({
  limit: integer(z.int().gt(0).lte(100_000)).optional(),
  offset: integer(z.int().gte(0)).default(0),
});
export type Page = z.output<typeof Page>;

/** The response of an operation that has no data to return. */
export const Ack = z.object({ status: z.literal("success"), detail: z.string() }).meta({ id: "Done" });
export type Ack = z.output<typeof Ack>;
export const ack = (detail: string): Ack => ({ status: "success", detail });

export const HTTPValidationError = z
  .object({
    detail: z.array(z.object({ loc: z.array(z.union([z.string(), z.int()])), msg: z.string(), type: z.string() })),
  })
  .meta({ id: "HTTPValidationError" });

export const ErrorResponse = z.object({ detail: z.string() }).meta({ id: "Problem" });
