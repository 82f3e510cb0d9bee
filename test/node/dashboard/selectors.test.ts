import { describe, expect, it } from "vitest";
import { completionAt } from "../../../src/dashboard/selectors/completion.ts";
import { changesBetween, errorsIn, newRow, rowsOf } from "../../../src/dashboard/selectors/label-draft.ts";
import { allows, mayOperate } from "../../../src/dashboard/selectors/own-grants.ts";
import { problemIn, siteIn, siteTerm, withoutKey, withTerm } from "../../../src/dashboard/selectors/selector-text.ts";

const VOCABULARY = {
  labels: [
    {
      key: "site",
      agents: 6,
      values: [
        { value: "uk/bristol/library", agents: 3 },
        { value: "uk/bristol", agents: 2 },
        { value: "de", agents: 1 },
      ],
    },
    { key: "technology", agents: 6, values: ["LiFi", "WiFi", "5G"].map((value) => ({ value, agents: 2 })) },
  ],
  groups: [{ name: "roof", description: "On roofs" }],
};

/** Returns the texts after each option was chosen. The caret is at `|`. */
function completed(marked: string): string[] {
  const caret = marked.indexOf("|");
  const text = marked.replace("|", "");
  const { from, to, options } = completionAt(text, caret, VOCABULARY);
  return options.map(({ insert }) => text.slice(0, from) + insert + text.slice(to));
}

describe("the completion of a selector", () => {
  it.each([
    ["|", ["site", "technology", "@roof"]],
    ["te|", ["technology", "site"]],
    ["@|", ["@roof"]],
    ["!si|", ["!site"]],
    ["site|", ["site=", "site!=", "site in (", "site notin ("]],
    ["site |", ["site =", "site !=", "site in (", "site notin ("]],
    ["site no|", ["site notin ("]],
    ["site=|", ["site=uk/*", "site=uk/bristol/library", "site=uk/bristol/*", "site=uk/bristol", "site=de"]],
    ["site!=d|", ["site!=de"]],
    ["site=LIB|", ["site=uk/bristol/library"]],
    ["technology in (|", ["technology in (LiFi", "technology in (WiFi", "technology in (5G"]],
    ["technology in (LiFi, |", ["technology in (LiFi, WiFi", "technology in (LiFi, 5G"]],
    ["technology in (LiFi |", ["technology in (LiFi , ", "technology in (LiFi )"]],
    ["technology in (LiFi,WiFi),si|", ["technology in (LiFi,WiFi),site"]],
    ["site=d|x,technology", ["site=de,technology"]],
    ["unknown=|", []],
    ["technology in (LiFi) |", []],
  ])("offers for %s: %j", (text, expected) => {
    expect(completed(text)).toEqual(expected);
  });

  it("shows the number of access points, for a pattern of all values that it fits", () => {
    expect(completionAt("site=uk", 7, VOCABULARY).options).toContainEqual({
      insert: "uk/*",
      detail: "5 access points",
    });
  });

  it("offers at most ten options", () => {
    const values = Array.from({ length: 30 }, (_, i) => ({ value: `v${i}`, agents: 1 }));
    const vocabulary = { labels: [{ key: "a", agents: 30, values }], groups: [] };
    expect(completionAt("a=", 2, vocabulary).options).toHaveLength(10);
  });
});

describe("the text of a selector", () => {
  it("names the position of an error", () => {
    expect(problemIn("site=uk,")).toMatchObject({ position: 8 });
    expect(problemIn("site in (uk")).toMatchObject({ message: "`,` or `)` expected at position 11" });
    expect(problemIn("site in (uk,uk/*)")).toBeUndefined();
  });

  it("changes the condition on the site and keeps all others", () => {
    const others = withoutKey("a!=b, site in (uk,uk/*),technology notin (x,y),!old,@roof", "site");
    expect(others).toBe("a!=b,technology notin (x,y),!old,@roof");
    expect(withTerm(others, siteTerm("de"))).toBe(`${others},site in (de,de/*)`);
    expect(withTerm(" ", siteTerm("de"))).toBe("site in (de,de/*)");
    expect(withoutKey("site in (", "site")).toBe("site in (");
  });

  it.each([
    ["site in (uk,uk/*)", "uk"],
    ["technology=5G,site in (uk/bristol,uk/bristol/*)", "uk/bristol"],
    ["site=uk", "uk"],
    ["!site", null],
    ["site", undefined],
    ["site=uk/*", undefined],
    ["site!=uk", undefined],
    ["site in (uk,de)", undefined],
    ["site=uk,site=de", undefined],
    ["site in (", undefined],
  ])("finds the chosen site in %s", (text, site) => {
    expect(siteIn(text)).toBe(site);
  });

  it("chooses a site with a path of any length", () => {
    for (const path of ["", "x".repeat(61), "x".repeat(62), "x".repeat(63)]) {
      expect(problemIn(siteTerm(path))).toBeUndefined();
    }
  });
});

describe("the form for labels", () => {
  it("finds what was added, changed and removed, and leaves the labels of the service", () => {
    const before = { site: "uk", room: "1", floor: "2", technology: "LiFi" };
    const [floor, room, site] = rowsOf(before);
    expect([floor?.key, room?.key, site?.key]).toEqual(["floor", "room", "site"]);
    const rows = [newRow("room", "1"), newRow("site", "de"), newRow(" new ", " x "), newRow()];
    expect(changesBetween(before, rows)).toEqual({ floor: null, site: "de", new: "x" });
    expect(changesBetween(before, rowsOf(before))).toEqual({});
  });

  it("rejects invalid and duplicate keys, labels of the service, and invalid values", () => {
    const rows = ["a", "a", "-b", "owner", "c"].map((key, i) => newRow(key, i === 4 ? "two words" : "x"));
    const errors = errorsIn([...rows, newRow()]);
    expect(rows.map(({ id }) => Object.keys(errors.get(id) ?? {}))).toEqual([[], ["key"], ["key"], ["key"], ["value"]]);
  });
});

describe("the grants of the user", () => {
  const labels = { site: "uk/bristol", owner: "other@example.com" };
  const groups = [{ name: "west", selector: "site=uk/*", description: "" }];

  it("allow what their role includes, for the access points of their selector", () => {
    const grants = [{ role: "operator" as const, selector: "site=uk/*" }];
    expect(allows(grants, "viewer", labels, [])).toBe(true);
    expect(allows(grants, "manager", labels, [])).toBe(false);
    expect(allows(grants, "operator", { site: "de" }, [])).toBe(false);
    expect(allows([{ role: "manager", selector: "@west" }], "manager", labels, groups)).toBe(true);
    expect(allows([{ role: "manager", selector: "@west" }], "manager", {}, groups)).toBe(false);
  });

  it("let users operate what they emulate", () => {
    const viewer = [{ role: "viewer" as const, selector: "" }];
    expect(mayOperate(null, labels, [], "me")).toBe(true);
    expect(mayOperate(viewer, labels, [], "me")).toBe(false);
    expect(mayOperate(viewer, labels, [], "other@example.com")).toBe(true);
    expect(mayOperate([], labels, [], "me")).toBe(true);
  });
});
