import * as fc from "fast-check";

/** Values that no well-behaved client sends. */

/** Text that is written into JSON without quotes, for what `JSON.stringify` cannot express. */
const LITERAL = /"@literal:([^"@]*)@"/g;
const literal = (text: string): string => `@literal:${text}@`;
export const withLiterals = (json: string): string => json.replaceAll(LITERAL, "$1");

/** Code units around and among the surrogates: most of these strings are not well-formed. */
const loneSurrogates = fc
  .array(fc.integer({ min: 0xd700, max: 0xe0ff }), { minLength: 1, maxLength: 30 })
  .map((units) => String.fromCharCode(...units));

export const hostileText: fc.Arbitrary<string> = fc.oneof(
  fc.string({ unit: "binary", maxLength: 300 }),
  loneSurrogates,
  fc.constantFrom(
    ..."__proto__ constructor toString % _ + # agent/+/data $SYS/# ../../../etc/passwd".split(" "),
    ..."..\\..\\windows\\win.ini NaN Infinity -Infinity 1e999 0x10 １２ null undefined true <script>alert(1)</script> 2026-02-30".split(
      " ",
    ),
    ..."9999-99-99T99:99:99Z +275760-09-13T00:00:00.001Z 0000-01-01T00:00:00Z 1900-01-01T00:00:00+23:59".split(" "),
    ...["' OR '1'='1' --", "'; DROP TABLE users; --", "{x:String} %s {{7*7}}", "\\' OR 1=1 /*", "a\r\nX-Injected: yes"],
    ...["\u0000", "a\u0000b", "\u0007\u001b[31m\u007f\u0085", "\ud800", "\udfff\ud800", "\u202e\u2028\ufeff"],
    ...["", " ", "\t\n", "9".repeat(400), "a".repeat(100_000), "e\u0301".repeat(5_000)],
  ),
);

const nested = (depth: number): unknown => JSON.parse("[".repeat(depth) + 1 + "]".repeat(depth));

/** Constant during a run, so that the same seed gives the same requests. */
const STARTED_MS = Date.now();
const DAY_MS = 86_400_000;

/** The report of an agent that was offline for long: samples of more days than are stored. */
export const backlog: fc.Arbitrary<object[]> = fc
  .record({ samples: fc.integer({ min: 1, max: 1_000 }), everyDays: fc.integer({ min: 0, max: 10 }) })
  .map(({ samples, everyDays }) =>
    Array.from({ length: samples }, (_, i) => ({ ts: STARTED_MS - i * (everyDays * DAY_MS + 1), payload: { a: i } })),
  );

export const hostileValue: fc.Arbitrary<unknown> = fc.oneof(
  { weight: 3, arbitrary: hostileText },
  {
    weight: 2,
    arbitrary: fc.constantFrom<unknown>(
      ...["1e400", "-1e400", "1e-400", "-0", "0.1e1", "123456789012345678901234567890", "1E+2"].map(literal),
      ...["NaN", "Infinity", "-Infinity", "01", "0x1", "+1", ".5", "1.", "undefined", "'a'"].map(literal),
      ...[Number.MAX_SAFE_INTEGER, -Number.MAX_SAFE_INTEGER, 2 ** 53, 2 ** 63, 1e308, 5e-324],
    ),
  },
  fc.constantFrom<unknown>(
    ...[nested(31), nested(33), JSON.parse(`${'{"a":'.repeat(40)}1${"}".repeat(40)}`), nested(3_000)],
    // Parsed, since an assignment to `__proto__` would set the prototype.
    JSON.parse('{"__proto__":{"isAdmin":true,"roles":["admin"]}}'),
    { constructor: { prototype: { isAdmin: true } } },
    ...[{ toString: 1 }, { toJSON: "x" }, JSON.parse('{"then":"x"}'), { hasOwnProperty: null }, { "": "" }],
    { ["a".repeat(10_000)]: 1 },
    Array.from({ length: 5_000 }, (_, i) => i),
    Object.fromEntries(Array.from({ length: 3_000 }, (_, i) => [`key-${i}`, i])),
  ),
  fc.jsonValue({ maxDepth: 6, stringUnit: "binary" }),
  fc.dictionary(loneSurrogates, fc.oneof(loneSurrogates, fc.integer()), { maxKeys: 3 }),
  backlog,
);

const PERCENT_ENCODED = [
  ..."% %2 %zz %00 %0d%0aX-Injected:%20yes %20 %2B %2e%2e %2e%2e%2f%2e%2e%2fetc%2fpasswd ..%2f..%2fhealthz".split(" "),
  ..."%252e%252e%252f a%2fb a%5cb %C0%AF %ED%A0%80 %F4%90%80%80 %FF %u0041 %6d%65 me%00 %23".split(" "),
];

/** Parameters of a path or a query, encoded well or badly. */
export const oddEncoding = fc.constantFrom(
  ...PERCENT_ENCODED,
  ...". .. ... + a+b a/b a\\b a;b=c a,b ME me/ / // a\u00ffb [] a?b a=b * :ap_id {ap_id}".split(" "),
  ...["", "a".repeat(5_000)],
);
