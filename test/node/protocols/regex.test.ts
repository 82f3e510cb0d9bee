import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { compileRegex, newStepBudget } from "../../../src/protocols/prometheus/regex.ts";
import { RegexError } from "../../../src/protocols/prometheus/regex-syntax.ts";

const matches = (pattern: string, text: string): boolean => compileRegex(pattern, newStepBudget()).matches(text);

describe("a regular expression of PromQL", () => {
  it.each([
    ["ap-1", "ap-1", true],
    ["ap-1", "ap-12", false],
    ["ap-.*", "ap-12", true],
    [".*", "", true],
    [".+", "", false],
    ["", "", true],
    ["a|bc|", "bc", true],
    ["a|bc|", "", true],
    ["(ap|sw)-[0-9]{2,3}", "sw-123", true],
    ["(ap|sw)-[0-9]{2,3}", "sw-1", false],
    ["(?:a|b)+c?", "abab", true],
    ["[^a-c]x", "dx", true],
    ["[^a-c]x", "bx", false],
    ["[]a]+", "]a", true],
    ["[a-]+", "a-", true],
    ["\\d+\\.\\d+", "10.5", true],
    ["\\d+\\.\\d+", "10x5", false],
    ["a.c", "a\nc", true],
    ["(?-s)a.c", "a\nc", false],
    ["(?i)ABc", "aBC", true],
    ["(?i:a)B", "AB", true],
    ["(?i:a)B", "Ab", false],
    ["^ap$", "ap", true],
    ["a{,2}", "a{,2}", true],
    ["a{0}b", "b", true],
    ["\\pL+", "äé", true],
    ["\\p{Lu}", "a", false],
    ["\\x41\\x{1F600}", "A😀", true],
    [".", "😀", true],
    ["\\bup\\b.*", "up now", true],
    ["(?P<name>a+)", "aaa", true],
    ["(^a|b$)*", "a", true],
    ["a+?", "aaa", true],
    ["(a|||)b", "b", true],
    ["(a|||)b", "ab", true],
    ["(){3}a(){0,3}", "a", true],
    ["(?i)aäAÄ", "AÄaä", true],
    ["(?i)a(?-i)a", "Aa", true],
    ["(?i)a(?-i)a", "AA", false],
    ["[\\pL\\pL\\d\\d]+", "ä1", true],
    ["[^\\s\\s]", " ", false],
  ])("%j for %j: %s", (pattern, text, expected) => {
    expect(matches(pattern, text)).toBe(expected);
  });

  it.each([
    "a**",
    "*a",
    "(a",
    "a)",
    "[a",
    "a{3,2}",
    "a{1001}",
    "(?=a)",
    "\\1",
    "(?m)a",
    "[[:alpha:]]",
    "\\",
    "(?<a",
    "[b-a]",
    "\\p{Zz}",
    "\\pX",
    "\\P{Lx}",
    "[\\pX]",
  ])("%j is rejected", (pattern) => {
    expect(() => matches(pattern, "a")).toThrow(RegexError);
  });

  it.each([
    ...[
      "C",
      "Cc",
      "Cf",
      "Cn",
      "Co",
      "Cs",
      "L",
      "Ll",
      "Lm",
      "Lo",
      "Lt",
      "Lu",
      "M",
      "Mc",
      "Me",
      "Mn",
      "N",
      "Nd",
      "Nl",
      "No",
    ],
    ...["P", "Pc", "Pd", "Pe", "Pf", "Pi", "Po", "Ps", "S", "Sc", "Sk", "Sm", "So", "Z", "Zl", "Zp", "Zs"],
  ])("has the Unicode category %s", (category) => {
    for (const char of ["a", "A", "1", "-", "$", " ", "\n", "ǅ", "ʰ", "٣", "Ⅷ", "😀", "\u2028", "\u0301"])
      for (const letter of ["p", "P"])
        expect(matches(`\\${letter}{${category}}`, char)).toBe(
          new RegExp(`^\\${letter}{${category}}$`, "u").test(char),
        );
  });

  it("lists the texts of an alternative of texts, however long", () => {
    const names = Array.from({ length: 2_000 }, (_, i) => `ap-${i}.site`);
    const regex = compileRegex(names.map((name) => name.replace(".", "\\.")).join("|"), newStepBudget());
    expect(regex.literals).toEqual(names);
    expect(regex.matches("ap-7.site")).toBe(true);
    expect(regex.matches("ap-7xsite")).toBe(false);
  });

  it("that would take JavaScript exponential time is matched in few steps", () => {
    const budget = newStepBudget();
    const before = budget.left;
    expect(compileRegex("(a+)+b", budget).matches("a".repeat(256))).toBe(false);
    expect(before - budget.left).toBeLessThan(10_000);
  });

  it("is rejected if it is too long, too deep, too complex or takes too many steps", () => {
    expect(() => matches(`.*${"a".repeat(2_000)}`, "a")).toThrow(RegexError);
    expect(() => matches("(".repeat(400) + ")".repeat(400), "a")).toThrow(RegexError);
    expect(() => matches("((a{100}){100}){100}", "a")).toThrow(RegexError);
    expect(() => compileRegex("(.*a){100}", { left: 1_000 }).matches("a".repeat(200))).toThrow(RegexError);
  });

  it.each([
    "((((){1000}){1000}){1000}){1000}",
    "((((a{0}){1000}){1000}){1000}){1000}",
    "(((((?i)){1000}){1000}){1000}){1000}",
    "((((|){0}){1000}){1000}){1000}",
    `(${"|".repeat(900)}){1000}`,
    `((${"|".repeat(900)}){1000}.)*z`,
  ])("is rejected if the parts that it repeats are empty: %.40j", (pattern) => {
    expect(() => matches(pattern, "a".repeat(20))).toThrow(RegexError);
  });

  it("takes no more steps if it has many empty options", () => {
    const stepsOf = (pattern: string): number => {
      const budget = newStepBudget();
      const before = budget.left;
      expect(compileRegex(pattern, budget).matches("a".repeat(20))).toBe(false);
      return before - budget.left;
    };
    expect(stepsOf(`((${"|".repeat(900)}).)*z`)).toBe(stepsOf("((|).)*z"));
  });

  it("takes a step for each path, also where paths meet", () => {
    const budget = newStepBudget();
    const before = budget.left;
    expect(compileRegex(`(${"a|".repeat(400)}b)*z`, budget).matches("a".repeat(20))).toBe(false);
    expect(before - budget.left).toBeGreaterThan(20 * 2 * 400);
  });

  it("has classes that take steps, once for equal ones", () => {
    const stepsOf = (pattern: string): number => {
      const budget = newStepBudget();
      const before = budget.left;
      compileRegex(pattern, budget);
      return before - budget.left;
    };
    expect(stepsOf("(?i)a.*")).toBeGreaterThan(0);
    expect(stepsOf("[\\pL].*")).toBeGreaterThan(stepsOf("[a].*"));
    expect(stepsOf(`[${"\\pL".repeat(300)}].*`)).toBe(stepsOf("[\\pL].*"));
    expect(stepsOf(`(?i)${"a".repeat(900)}.*`)).toBe(stepsOf("(?i)a.*"));
  });

  it("is rejected if the expressions of a request have too many classes of letters", () => {
    const classes = Array.from({ length: 100 }, (_, i) => `[\\pL${String.fromCodePoint(0x2190 + i)}]`);
    const budget = newStepBudget();
    const compileAll = () => {
      for (let i = 0; i < 1_024; i++) compileRegex(`(?i)(${classes.join("|")})`, budget).matches("a");
    };
    expect(compileAll).toThrow(RegexError);
  });

  it("is rejected if it is long and not a list of texts, before its classes are built", () => {
    for (let i = 0; i < 16; i++)
      expect(() => matches(`[${"\\pL".repeat(21_000)}${i}]`, "a")).toThrow("has more than 1000 characters");
    expect(() => matches(`(?i)${"a".repeat(65_000)}`, "a")).toThrow("has more than 1000 characters");
  });

  it("may repeat a sequence up to the limit of instructions", () => {
    expect(matches("(abc){600}", "abc".repeat(600))).toBe(true);
    expect(matches("((a|b)c){300}", "bc".repeat(300))).toBe(true);
  });

  it("lists the texts of nested alternatives", () => {
    const texts = Array.from({ length: 10_000 }, (_, i) => `${i}`);
    const pattern = `${"(".repeat(49)}${texts.join("|")}${"|a)".repeat(49)}`;
    expect(compileRegex(pattern, newStepBudget()).literals).toEqual([
      ...texts,
      ...Array.from({ length: 49 }, () => "a"),
    ]);
  });

  it("has the same result as in JavaScript, for any expression and text of a small alphabet", () => {
    const { pattern } = fc.letrec<{ pattern: string; unit: string }>((tie) => ({
      unit: fc.oneof(
        { maxDepth: 3 },
        fc.constantFrom("a", "b", ".", "[ab]", "[^a]", "\\."),
        fc
          .tuple(tie("pattern"), fc.constantFrom("", "*", "+", "?", "{2}", "{1,2}", "{0,}"))
          .map(([p, q]) => `(${p})${q}`),
      ),
      pattern: fc
        .array(fc.array(tie("unit"), { maxLength: 3 }), { minLength: 1, maxLength: 3 })
        .map((options) => options.map((units) => units.join("")).join("|")),
    }));
    fc.assert(
      fc.property(pattern, fc.array(fc.constantFrom("a", "b", "."), { maxLength: 8 }), (text, chars) => {
        const expected = new RegExp(`^(?:${text})$`, "s").test(chars.join(""));
        expect(matches(text, chars.join(""))).toBe(expected);
      }),
      { numRuns: 1_000 },
    );
  });
});
