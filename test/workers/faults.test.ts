import { describe, expect, it } from "vitest";
import * as z from "zod";
import { errorPosition } from "../../src/http/json.ts";
import { parse, toValidationItems } from "../../src/schemas/faults.ts";
import { Email, integer } from "../../src/schemas/primitives.ts";

function faultsOf(schema: z.ZodType, input: unknown) {
  const parsed = parse(schema, input);
  return parsed.success ? [] : toValidationItems("body", parsed.error);
}

/** One field `x` of the given schema; its fault as [type, msg]. */
function faultOf(schema: z.ZodType, ...value: [unknown?]): unknown {
  const input = value.length === 0 ? {} : { x: value[0] };
  return faultsOf(z.object({ x: schema }), input).map(({ type, msg }) => [type, msg])[0];
}

const count = integer(z.int().gt(0).lte(1000));

describe("faults are named as in pydantic v2:", () => {
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
      "Input should be a valid datetime or date",
    ],
    ["enumeration", z.enum(["a", "b", "c"]), ["d"], "literal_error", "Input should be 'a', 'b' or 'c'"],
    ["too short", z.string().min(8), ["x"], "string_too_short", "String should have at least 8 characters"],
    ["too long", z.string().max(1), ["xy"], "string_too_long", "String should have at most 1 character"],
    ["own rule", z.string().refine(() => false, "must rhyme"), ["x"], "value_error", "Value error, must rhyme"],
  ])("%s", (_name, schema, value, type, msg) => {
    expect(faultOf(schema, ...value)).toEqual([type, msg]);
  });

  it("integers may come as text, and extra fields are ignored", () => {
    expect(z.object({ x: count }).parse({ x: " 12 ", y: 1 })).toEqual({ x: 12 });
  });

  it("the place is a path with indices", () => {
    const schema = z.object({ emulators: z.array(z.object({ num_access_points: count })) });
    expect(faultsOf(schema, { emulators: [{ num_access_points: 0 }] })).toMatchObject([
      { loc: ["body", "emulators", 0, "num_access_points"] },
    ]);
  });
});

describe("the position of a JSON error", () => {
  it("is found in a megabyte of text in one pass", () => {
    const text = `{"a":["${"x\\n".repeat(300_000)}",${"1,".repeat(50_000)}]}`;
    expect(errorPosition(text)).toBe(text.length - 2);
  });

  it("is the end of a text that stops too early", () => {
    expect(errorPosition('{"a": ')).toBe(6);
    expect(errorPosition("")).toBe(0);
  });
});
