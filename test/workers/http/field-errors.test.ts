import { describe, expect, it } from "vitest";
import * as z from "zod";
import { errorPosition } from "../../../src/http/json.ts";
import { parse, toValidationItems } from "../../../src/lib/field-errors.ts";
import { Configuration } from "../../../src/schemas/agent.ts";
import { Email, integer } from "../../../src/schemas/primitives.ts";
import { AgentReport, Timestamp } from "../../../src/schemas/telemetry.ts";

function fieldErrorsOf(schema: z.ZodType, input: unknown) {
  const parsed = parse(schema, input);
  return parsed.success ? [] : toValidationItems("body", parsed.error);
}

/** Validates one field `x` with a schema and returns its error as [type, msg]. */
function errorOf(schema: z.ZodType, ...value: [unknown?]): unknown {
  const input = value.length === 0 ? {} : { x: value[0] };
  return fieldErrorsOf(z.object({ x: schema }), input).map(({ type, msg }) => [type, msg])[0];
}

const count = integer(z.int().gt(0).lte(1000));

describe("field errors equal those of pydantic v2", () => {
  it.each<[string, z.ZodType, [unknown?], string, string]>([
    ["missing", z.string(), [], "missing", "Field required"],
    ["missing integer", count, [], "missing", "Field required"],
    ["null, which is not missing", z.string(), [null], "string_type", "Input should be a valid string"],
    ["string", z.string(), [1], "string_type", "Input should be a valid string"],
    [
      "integer from text",
      count,
      ["x"],
      "int_parsing",
      "Input should be a valid integer, unable to parse string as an integer",
    ],
    [
      "fraction",
      count,
      [1.5],
      "int_from_float",
      "Input should be a valid integer, got a number with a fractional part",
    ],
    ["integer", count, [[]], "int_type", "Input should be a valid integer"],
    ["null as integer", count, [null], "int_type", "Input should be a valid integer"],
    ["list", z.array(z.string()), ["x"], "list_type", "Input should be a valid list"],
    ["dictionary", z.record(z.string(), z.unknown()), ["x"], "dict_type", "Input should be a valid dictionary"],
    [
      "object",
      z.object({ y: z.string() }),
      ["x"],
      "model_attributes_type",
      "Input should be a valid dictionary or object to extract fields from",
    ],
    ["greater than", count, [0], "greater_than", "Input should be greater than 0"],
    ["at most", count, [1001], "less_than_equal", "Input should be less than or equal to 1000"],
    [
      "pattern",
      z.string().regex(/^(5G|WiFi|LiFi)$/),
      ["4G"],
      "string_pattern_mismatch",
      "String should match pattern '^(5G|WiFi|LiFi)$'",
    ],
    ["e-mail", Email, ["x"], "value_error", "value is not a valid email address"],
    [
      "date-time",
      z.iso.datetime({ offset: true }),
      ["x"],
      "datetime_from_date_parsing",
      "Input should be a valid datetime or date, input is too short",
    ],
    ...[true, null, [1], {}].map((value): [string, z.ZodType, [unknown], string, string] => [
      `not a time: ${JSON.stringify(value)}`,
      Timestamp,
      [value],
      "datetime_type",
      "Input should be a valid datetime",
    ]),
    ["missing time", Timestamp, [], "missing", "Field required"],
    [
      "empty list",
      z.array(z.string()).min(1),
      [[]],
      "too_short",
      "List should have at least 1 item after validation, not 0",
    ],
    [
      "short list",
      z.array(z.string()).min(3),
      [["a"]],
      "too_short",
      "List should have at least 3 items after validation, not 1",
    ],
    [
      "long list",
      z.array(z.string()).max(2),
      [["a", "b", "c"]],
      "too_long",
      "List should have at most 2 items after validation, not 3",
    ],
    ["configuration", Configuration, ["x"], "dict_type", "Input should be a valid dictionary"],
    ["configuration that is a list", Configuration, [[]], "dict_type", "Input should be a valid dictionary"],
    ["configuration that is null", Configuration, [null], "dict_type", "Input should be a valid dictionary"],
    ["missing configuration", Configuration, [], "missing", "Field required"],
    ["agent's report", AgentReport, [1], "dict_type", "Input should be a valid dictionary"],
    ["enumeration", z.enum(["a", "b", "c"]), ["d"], "literal_error", "Input should be 'a', 'b' or 'c'"],
    ["too short", z.string().min(8), ["x"], "string_too_short", "String should have at least 8 characters"],
    ["too long", z.string().max(1), ["xy"], "string_too_long", "String should have at most 1 character"],
    ["custom rule", z.string().refine(() => false, "must rhyme"), ["x"], "value_error", "Value error, must rhyme"],
  ])("for: %s", (_name, schema, value, type, msg) => {
    expect(errorOf(schema, ...value)).toEqual([type, msg]);
  });

  // As in pydantic-core: for a text that is not a datetime, the error is that of parsing it as a date.
  it.each([
    ["2026-02-30T00:00:00Z", "day value is outside expected range"],
    ["2026-02-30", "day value is outside expected range"],
    ["2026-02-29T00:00:00Z", "day value is outside expected range"],
    ["2100-02-29T00:00:00Z", "day value is outside expected range"],
    ["2026-04-31T00:00:00Z", "day value is outside expected range"],
    ["2026-01-00T00:00:00Z", "day value is outside expected range"],
    ["2026-13-01T00:00:00Z", "month value is outside expected range of 1-12"],
    ["2026-00-01T00:00:00Z", "month value is outside expected range of 1-12"],
    ["2026-02-28T24:00:00Z", "unexpected extra characters at the end of the input"],
    ["2026-02-28T25:00:00Z", "unexpected extra characters at the end of the input"],
    ["2026-02-28T00:60:00Z", "unexpected extra characters at the end of the input"],
    ["2026-02-28T00:00:60Z", "unexpected extra characters at the end of the input"],
    ["2026-02-28T00:00:00+24:00", "unexpected extra characters at the end of the input"],
    ["2026-02-28T00:00:00+01:60", "unexpected extra characters at the end of the input"],
    ["2026-02-28T00:00:00ZZ", "unexpected extra characters at the end of the input"],
    ["2026-02-28X", "unexpected extra characters at the end of the input"],
    ["yesterday", "input is too short"],
    ["", "input is too short"],
    ["the day before", "invalid character in year"],
    ["2026/02/28", "invalid date separator, expected `-`"],
    ["2026-02/28", "invalid date separator, expected `-`"],
    ["2026-xx-28", "invalid character in month"],
    ["2026-02-xx", "invalid character in day"],
    // Our own limit: the range of the store.
    ["1899-12-31T23:59:59Z", "dates before 1900 and after 2299 are not supported"],
    ["99999999999999", "dates before 1900 and after 2299 are not supported"],
  ])("for the time %j: %s", (text, error) => {
    const msg = `Input should be a valid datetime or date, ${error}`;
    expect(errorOf(Timestamp, text)).toEqual(["datetime_from_date_parsing", msg]);
  });

  it("for a number that is not a time", () => {
    const msg = "Input should be a valid datetime, dates before 1900 and after 2299 are not supported";
    expect(errorOf(Timestamp, 1e15)).toEqual(["datetime_parsing", msg]);
  });

  it.each([
    ["2024-02-29T23:59:59.123456789Z", "2024-02-29T23:59:59.123Z"],
    ["2000-02-29", "2000-02-29T00:00:00.000Z"],
    ["2026-12-31t23:59:59z", "2026-12-31T23:59:59.000Z"],
    ["2026-12-31 23:59", "2026-12-31T23:59:00.000Z"],
    ["2026-12-31_23:59:59", "2026-12-31T23:59:59.000Z"],
    ["2026-12-31T23:59:59+23:59", "2026-12-31T00:00:59.000Z"],
    ["2026-12-31T23:59:59-0130", "2027-01-01T01:29:59.000Z"],
    ["1700000000", "2023-11-14T22:13:20.000Z"],
    ["1700000000.5", "2023-11-14T22:13:20.500Z"],
    [1_700_000_000_500, "2023-11-14T22:13:20.500Z"],
  ])("and the time %j is parsed as %s", (value, expected) => {
    expect(new Date(Timestamp.parse(value)).toISOString()).toBe(expected);
  });

  it("and integers may be text, and extra fields are ignored", () => {
    expect(z.object({ x: count }).parse({ x: " 12 ", y: 1 })).toEqual({ x: 12 });
  });

  it("and have a path with indices", () => {
    const schema = z.object({ emulators: z.array(z.object({ num_access_points: count })) });
    expect(fieldErrorsOf(schema, { emulators: [{ num_access_points: 0 }] })).toMatchObject([
      { loc: ["body", "emulators", 0, "num_access_points"] },
    ]);
  });
});

describe("the position of a JSON error", () => {
  it("is found in a megabyte of text", () => {
    const text = `{"a":["${"x\\n".repeat(300_000)}",${"1,".repeat(50_000)}]}`;
    expect(errorPosition(text)).toBe(text.length - 2);
  });

  it("is the end of a truncated text", () => {
    expect(errorPosition('{"a": ')).toBe(6);
    expect(errorPosition("")).toBe(0);
  });
});
