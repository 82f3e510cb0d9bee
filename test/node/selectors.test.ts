import { describe, expect, it } from "vitest";
import { expandGroups, matches, parseSelector, type Selector, SelectorError } from "../../src/lib/selectors.ts";

const parse = (text: string): Selector => {
  const selector = expandGroups(parseSelector(text), new Map());
  if (selector === undefined) throw new Error("A group is unknown");
  return selector;
};

describe("a selector", () => {
  const library = { site: "uk/bristol/library", technology: "LiFi" };

  it.each([
    ["", true],
    ["  ", true],
    ["site", true],
    ["!site", false],
    ["floor", false],
    ["!floor", true],
    ["technology=LiFi", true],
    ["technology==LiFi", true],
    ["technology = WiFi", false],
    ["technology!=LiFi", false],
    ["technology!=WiFi", true],
    ["floor!=3", true],
    ["technology in (LiFi,WiFi)", true],
    ["technology in(5G)", false],
    ["technology notin (5G, WiFi)", true],
    ["floor notin (3)", true],
    ["site=uk/bristol/*", true],
    ["site=uk/*", true],
    ["site=*", true],
    ["site=uk/london/*", false],
    ["site=uk/bristol", false],
    ["site in (uk/london/*,uk/bristol/*)", true],
    ["site=uk/bristol/*,technology in (LiFi,WiFi),!retired", true],
    ["site=uk/bristol/*,technology=5G", false],
    ["constructor", false],
  ])("%j selects the library: %j", (text, expected) => {
    expect(matches(parse(text), library)).toBe(expected);
  });

  it.each([
    ["site=", 5],
    ["site=uk bristol", 8],
    ["=uk", 0],
    ["site=uk,", 8],
    ["site in uk", 8],
    ["site in (uk", 11],
    ["site in ()", 9],
    ["si*te=uk", 0],
    ["site=a*b", 5],
    ["!", 1],
    ["@", 1],
    ["site=ü", 5],
    [`site=${"x".repeat(64)}`, 68],
    [`${"a,".repeat(32)}a`, 64],
    ["x".repeat(2_001), 2_000],
  ])("%j has an error at position %j", (text, position) => {
    expect(() => parseSelector(text)).toThrow(expect.objectContaining({ position }));
    expect(() => parseSelector(text)).toThrow(SelectorError);
  });

  it("refers to groups, whose conditions it adds to its own", () => {
    const groups = new Map([["bristol", parse("site=uk/bristol/*")]]);
    const terms = parseSelector("@bristol,technology=LiFi");
    expect(expandGroups(terms, groups)).toEqual(parse("site=uk/bristol/*,technology=LiFi"));
    expect(expandGroups(terms, new Map())).toBeUndefined();
  });
});
