import { describe, expect, it } from "vitest";
import { alignedLines, groupName, largestGroups } from "../../../src/dashboard/charts/aggregate-lines.ts";
import { isAbove, siteTreeOf } from "../../../src/dashboard/features/overview/site-tree.ts";

describe("the tree of sites", () => {
  const at = (site: string | null, online = true) => ({ site, online });

  it("counts access points and those online for each site and all sites above it", () => {
    const { sites, without } = siteTreeOf([
      ...[at("uk/bristol/library"), at("uk/bristol", false), at("uk"), at("de", false), at(null), at(null, false)],
    ]);
    expect(without).toEqual({ count: 2, online: 1 });
    expect(sites).toEqual([
      { name: "de", path: "de", count: 1, online: 0, below: [] },
      {
        ...{ name: "uk", path: "uk", count: 3, online: 2 },
        below: [
          {
            ...{ name: "bristol", path: "uk/bristol", count: 2, online: 1 },
            below: [{ name: "library", path: "uk/bristol/library", count: 1, online: 1, below: [] }],
          },
        ],
      },
    ]);
  });

  it("sorts numbers in names by their size", () => {
    const { sites } = siteTreeOf(["floor-10", "floor-9", "__proto__"].map((site) => at(site)));
    expect(sites.map(({ name }) => name)).toEqual(["__proto__", "floor-9", "floor-10"]);
  });

  it("takes only whole names for sites above", () => {
    expect(isAbove("uk", "uk/bristol")).toBe(true);
    expect(isAbove("uk", "uk")).toBe(true);
    expect(isAbove("uk", "ukraine")).toBe(false);
  });
});

describe("the lines of an aggregate", () => {
  const point = (second: number, value: number) => ({ ts: new Date(second * 1_000).toISOString(), value });
  const group = (site: string | null, agents: number, seconds: number[]) => ({
    labels: { site },
    agents,
    series: [{ metric: "users", points: seconds.map((second) => point(second, second)) }],
  });

  it("have the same times, with null for missing values and a break at gaps of all groups", () => {
    const { times, lines } = alignedLines("users", [group("uk", 1, [0, 10, 100]), group(null, 1, [10])], 10_000);
    expect(times).toEqual([0, 10_000, 55_000, 100_000]);
    expect(lines).toEqual([
      { name: "uk", values: [0, 10, null, 100], isolated: [3] },
      { name: "none", values: [null, 10, null, null], isolated: [1] },
    ]);
  });

  it("are empty for a metric without points", () => {
    expect(alignedLines("load", [group("uk", 1, [0])], 10_000)).toEqual({
      times: [],
      lines: [{ name: "uk", values: [], isolated: [] }],
    });
  });

  it("show the largest eight groups by name", () => {
    const groups = Array.from({ length: 12 }, (_, i) => group(`s${i}`, i, []));
    const response = { statistic: "avg" as const, bucket_ms: 1, start_time: "", end_time: "", groups };
    expect(largestGroups(response).map(groupName)).toEqual(["s4", "s5", "s6", "s7", "s8", "s9", "s10", "s11"]);
    expect(groupName({ labels: {} })).toBe("All");
  });
});
