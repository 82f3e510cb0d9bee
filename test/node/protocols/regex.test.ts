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
  ])("%j is rejected", (pattern) => {
    expect(() => matches(pattern, "a")).toThrow(RegexError);
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
