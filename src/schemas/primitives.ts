import * as z from "zod";

/** How deeply the JSON of a body may be nested. */
export const MAX_JSON_DEPTH = 32;

/** Small shapes that the wire's records are made of. */

/** How a schema names a customIssue that zod has no word for; `faults.ts` passes type and text on as they are. */
export function customIssue(type: string, msg: string) {
  return { code: "custom" as const, message: msg, params: { type } };
}

/** A value of a schema for objects. Anything else is reported as in pydantic for a `dict`; zod's own customIssue is that of a model. */
export function dictionary<S extends z.ZodType>(schema: S) {
  return z.preprocess((value, context) => {
    if (value === undefined || (typeof value === "object" && value !== null && !Array.isArray(value))) return value;
    context.addIssue(customIssue("dict_type", "Input should be a valid dictionary"));
    return z.NEVER;
  }, schema);
}

/** An integer, also where the wire can only say it as text. */
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

/** An e-mail address as a login name: trimmed and in lower case, so that it is one account however it is typed. */
export const Email = z
  .string()
  .transform((text) => text.trim().toLowerCase())
  .pipe(z.email().max(254));

export const Password = z.string().min(8).max(128);

/** `ap_id` and `app_name`: they become MQTT topic levels and path segments. */
export const Identifier = z
  .string()
  .regex(/^[A-Za-z0-9._:-]{1,64}$/)
  .refine((name) => name !== "." && name !== "..", "'.' and '..' are no names");

/** Pages of a list that comes whole unless asked for in parts. */
export const Page = z.object({
  limit: integer(z.int().gt(0).lte(100_000)).optional(),
  offset: integer(z.int().gte(0)).default(0),
});
export type Page = z.output<typeof Page>;

/** The answer of an operation that has nothing to return. */
export const Ack = z.object({ status: z.literal("success"), detail: z.string() }).meta({ id: "Done" });
export type Ack = z.output<typeof Ack>;
export const ack = (detail: string): Ack => ({ status: "success", detail });
