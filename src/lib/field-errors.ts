import * as z from "zod";
import { datetimeError } from "./datetimes.ts";
import type { ValidationItem } from "./errors.ts";

/** Translates zod's issues to the messages of pydantic v2, which clients match on. The messages never contain the input. */

type FieldError = Pick<ValidationItem, "msg" | "type">;

export const MISSING: FieldError = { type: "missing", msg: "Field required" };

/** Limits the size of an error response. */
const MAX_ITEMS = 100;

/**
 * Converts the issues of `parse`.
 *
 * @param source the first element of each `loc`, such as "body" or "query"
 */
export function toValidationItems(source: string, error: z.core.$ZodError): ValidationItem[] {
  return error.issues.slice(0, MAX_ITEMS).map((issue) => {
    const path = issue.path.map((key) => (typeof key === "symbol" ? String(key) : key));
    return { loc: [source, ...path], ...toFieldError(issue) };
  });
}

/** Parses and keeps each issue's input, which distinguishes a missing value from a wrong one. */
export const parse = <S extends z.ZodType>(schema: S, value: unknown) =>
  z.safeParse(schema, value, { reportInput: true });

function toFieldError(issue: z.core.$ZodIssue): FieldError {
  const { input } = issue;
  if (input === undefined && issue.code !== "custom") return MISSING;
  switch (issue.code) {
    case "invalid_type":
      return wrongType(issue.expected, input);
    case "too_small":
      return tooSmall(issue);
    case "too_big":
      return tooBig(issue);
    case "invalid_format":
      return wrongFormat(issue);
    case "invalid_value":
      return { type: "literal_error", msg: `Input should be ${alternatives(issue.values)}` };
    case "custom":
      return typeof issue.params?.type === "string"
        ? { type: issue.params.type, msg: issue.message }
        : valueError(issue.message);
    case "invalid_union": {
      const [first] = issue.errors.flat();
      return first === undefined ? valueError(issue.message) : toFieldError(first);
    }
    case "not_multiple_of":
      return { type: "multiple_of", msg: `Input should be a multiple of ${issue.divisor}` };
    case "invalid_key": {
      const [first] = issue.issues;
      return first === undefined ? valueError(issue.message) : toFieldError(first);
    }
    case "invalid_element":
    case "unrecognized_keys":
      return valueError(issue.message);
  }
}

const valueError = (message: string): FieldError => ({ type: "value_error", msg: `Value error, ${message}` });

const TYPE_ERRORS: Record<string, FieldError> = {
  string: { type: "string_type", msg: "Input should be a valid string" },
  number: { type: "float_type", msg: "Input should be a valid number" },
  boolean: { type: "bool_type", msg: "Input should be a valid boolean" },
  array: { type: "list_type", msg: "Input should be a valid list" },
  record: { type: "dict_type", msg: "Input should be a valid dictionary" },
  object: {
    type: "model_attributes_type",
    msg: "Input should be a valid dictionary or object to extract fields from",
  },
};

function wrongType(expected: string, input: unknown): FieldError {
  if (expected === "number" && typeof input === "string") {
    return { type: "float_parsing", msg: "Input should be a valid number, unable to parse string as a number" };
  }
  return TYPE_ERRORS[expected] ?? valueError(`expected ${expected}`);
}

const characters = (count: number | bigint): string => (Number(count) === 1 ? "1 character" : `${count} characters`);
const items = (count: number | bigint): string => (Number(count) === 1 ? "1 item" : `${count} items`);

const lengthOf = (input: unknown): number => (Array.isArray(input) ? input.length : 0);

function tooSmall({ origin, minimum, inclusive, input }: z.core.$ZodIssueTooSmall): FieldError {
  if (origin === "string") {
    return { type: "string_too_short", msg: `String should have at least ${characters(minimum)}` };
  }
  if (origin === "array") {
    const msg = `List should have at least ${items(minimum)} after validation, not ${lengthOf(input)}`;
    return { type: "too_short", msg };
  }
  return inclusive
    ? { type: "greater_than_equal", msg: `Input should be greater than or equal to ${minimum}` }
    : { type: "greater_than", msg: `Input should be greater than ${minimum}` };
}

function tooBig({ origin, maximum, inclusive, input }: z.core.$ZodIssueTooBig): FieldError {
  if (origin === "string") {
    return { type: "string_too_long", msg: `String should have at most ${characters(maximum)}` };
  }
  if (origin === "array") {
    const msg = `List should have at most ${items(maximum)} after validation, not ${lengthOf(input)}`;
    return { type: "too_long", msg };
  }
  return inclusive
    ? { type: "less_than_equal", msg: `Input should be less than or equal to ${maximum}` }
    : { type: "less_than", msg: `Input should be less than ${maximum}` };
}

function wrongFormat({ format, pattern, message, input = "" }: z.core.$ZodIssueInvalidStringFormat): FieldError {
  switch (format) {
    case "email":
      return { type: "value_error", msg: "value is not a valid email address" };
    case "datetime":
      return {
        type: "datetime_from_date_parsing",
        msg: `Input should be a valid datetime or date, ${datetimeError(input)}`,
      };
    case "regex":
      return {
        type: "string_pattern_mismatch",
        msg: `String should match pattern '${(pattern ?? "").replace(/^\/|\/[a-z]*$/g, "")}'`,
      };
    default:
      return valueError(message);
  }
}

/** Returns a list such as: 'a', 'b' or 'c'. */
function alternatives(values: readonly unknown[]): string {
  const quoted = values.map((value) => (typeof value === "string" ? `'${value}'` : String(value)));
  const last = quoted.pop() ?? "";
  return quoted.length === 0 ? last : `${quoted.join(", ")} or ${last}`;
}
