import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { selectPoints } from "../../../src/telemetry/export/selected-points.ts";
import type { Point } from "../../../src/telemetry/pending-samples.ts";
import type { ExportStore, SeriesKey } from "../../../src/telemetry/store/export-queries.ts";
import type { AgentSample } from "../../../src/telemetry/store/telemetry-store.ts";

type Stored = SeriesKey & { points: Point[] };

/** A store in memory that records the queries. */
function fakeStore(all: readonly Stored[]) {
  const queries: { series: number; limit: number | undefined; points: number }[] = [];
  const store: Pick<ExportStore, "series" | "points"> = {
    async *series({ fromMs, toMs }) {
      for (const { points, ...key } of all) {
        const { length: count } = points.filter(({ tsMs }) => tsMs >= fromMs && tsMs <= toMs);
        if (count > 0) yield [{ ...key, count }];
      }
    },
    points: async (series, { fromMs, toMs }, limit) => {
      let left = limit ?? Number.POSITIVE_INFINITY;
      const found = series.flatMap(({ apId, metric }) => {
        const stored = all.find((one) => one.apId === apId && one.metric === metric)?.points ?? [];
        const points = stored.filter(({ tsMs }) => tsMs >= fromMs && tsMs <= toMs).slice(0, left);
        left -= points.length;
        return points.length === 0 ? [] : [{ apId, metric, points }];
      });
      queries.push({ series: series.length, limit, points: found.reduce((sum, { points }) => sum + points.length, 0) });
      return found;
    },
  };
  return { store, queries };
}

const pointsOf = (count: number, value = 1): Point[] =>
  Array.from({ length: count }, (_, i) => ({ tsMs: i + 1, value }));
const sampleOf = (apId: string, metric: string, { tsMs, value }: Point): AgentSample => ({
  apId,
  tsMs,
  metrics: { [metric]: value },
  texts: {},
});

async function readAll(stored: readonly Stored[], pending: readonly AgentSample[], range = { fromMs: 0, toMs: 1e9 }) {
  const { store, queries } = fakeStore(stored);
  const inRange = pending.filter(({ tsMs }) => tsMs >= range.fromMs && tsMs <= range.toMs);
  const selected = await selectPoints(
    store,
    { pendingOfMany: async () => inRange },
    { ...range, apIds: ["a", "b"], isSelected: () => true },
  );
  const found = new Map<string, Point[]>();
  for await (const { series, points } of selected.read(selected.series)) {
    const key = `${series.apId} ${series.metric}`;
    found.set(key, [...(found.get(key) ?? []), ...points]);
  }
  return { found, queries, series: selected.series };
}

describe("the points of many series", () => {
  it("are those of the store and those that are pending, of which the stored ones count", async () => {
    const stored = [{ apId: "a", metric: "x", points: pointsOf(2) }];
    const pending = [
      sampleOf("a", "x", { tsMs: 2, value: 9 }),
      sampleOf("a", "x", { tsMs: 3, value: 9 }),
      sampleOf("b", "y", { tsMs: 1, value: 7 }),
    ];
    const { found, series } = await readAll(stored, pending);
    expect(Object.fromEntries(found)).toEqual({
      "a x": [...pointsOf(2), { tsMs: 3, value: 9 }],
      "b y": [{ tsMs: 1, value: 7 }],
    });
    expect(series.map(({ count }) => count)).toEqual([4, 1]);
  });

  it("are those of the selected series", async () => {
    const { store } = fakeStore(["x", "y", "z"].map((metric) => ({ apId: "a", metric, points: pointsOf(2) })));
    const pending = ["x", "y", "v", "w"].map((metric) => sampleOf("a", metric, { tsMs: 3, value: 1 }));
    const asked: string[] = [];
    const { series } = await selectPoints(
      store,
      { pendingOfMany: async () => pending },
      {
        fromMs: 0,
        toMs: 10,
        apIds: ["a"],
        isSelected({ metric }) {
          asked.push(metric);
          return metric > "w" && metric !== "y";
        },
      },
    );
    expect(series.map(({ metric, count }) => [metric, count])).toEqual([
      ["x", 3],
      ["z", 2],
    ]);
    expect(asked.toSorted()).toEqual(["v", "w", "x", "y", "y", "z"]);
  });

  it("are read in batches of limited size", async () => {
    const stored = Array.from({ length: 450 }, (_, i) => ({ apId: "a", metric: `m${i}`, points: pointsOf(300) }));
    const { found, queries } = await readAll(stored, []);
    expect(found.size).toBe(450);
    for (const { series, points } of queries) {
      expect(series).toBeLessThanOrEqual(200);
      expect(points).toBeLessThanOrEqual(50_000);
    }
  });

  it("of a long series are read in parts, with pending points in each", async () => {
    const stored = [{ apId: "a", metric: "x", points: pointsOf(120_000).filter(({ tsMs }) => tsMs % 10 !== 0) }];
    const pending = pointsOf(120_005)
      .filter(({ tsMs }) => tsMs % 10 === 0 || tsMs > 119_999)
      .map((point) => sampleOf("a", "x", point));
    const { found, queries } = await readAll(stored, pending);
    expect(found.get("a x")).toEqual(pointsOf(120_005));
    expect(queries.map(({ points }) => points)).toEqual([50_000, 50_000, 8_000]);
  });

  it("of several metrics are joined, also if they are long: of two values with the same time, that of the first metric counts", async () => {
    const of = (metric: string, value: number, condition: (tsMs: number) => boolean) => ({
      apId: "a",
      metric,
      points: pointsOf(70_000, value).filter(({ tsMs }) => condition(tsMs)),
    });
    const stored = [of("x", 1, (tsMs) => tsMs % 3 === 0), of("y", 2, (tsMs) => tsMs % 2 === 0), of("z", 3, () => true)];
    const { store, queries } = fakeStore(stored);
    const pending = [sampleOf("a", "y", { tsMs: 70_001, value: 4 }), sampleOf("a", "x", { tsMs: 70_000, value: 5 })];
    const query = { fromMs: 0, toMs: 1e9, apIds: ["a"], isSelected: () => true };
    const selected = await selectPoints(store, { pendingOfMany: async () => pending }, query);
    const read = async (count: number) => {
      const found: Point[] = [];
      const joined = { apId: "a", metric: "x", aliases: ["y", "z"], count };
      for await (const { points } of selected.read([joined])) found.push(...points);
      return found;
    };
    const expected = pointsOf(70_001).map(({ tsMs }) => {
      if (tsMs > 69_999) return { tsMs, value: tsMs === 70_000 ? 5 : 4 };
      return { tsMs, value: tsMs % 3 === 0 ? 1 : tsMs % 2 === 0 ? 2 : 3 };
    });
    // A difference of long lists takes minutes to write.
    const firstWrong = (found: Point[]) =>
      expected.find(({ tsMs, value }, i) => found[i]?.tsMs !== tsMs || found[i]?.value !== value);
    const long = await read(150_000);
    expect([long.length, firstWrong(long)]).toEqual([70_001, undefined]);
    expect(Math.max(...queries.map(({ points }) => points))).toBeLessThanOrEqual(16_667);
    const short = await read(10);
    expect([short.length, firstWrong(short)]).toEqual([70_001, undefined]);
  });

  it("equal a merge in memory, for any stored and pending points and any range", async () => {
    const points = fc.uniqueArray(fc.record({ tsMs: fc.integer({ min: 1, max: 30 }), value: fc.integer() }), {
      selector: ({ tsMs }) => tsMs,
    });
    await fc.assert(
      fc.asyncProperty(points, points, fc.nat(30), fc.nat(30), async (stored, pending, fromMs, toMs) => {
        const sorted = stored.toSorted((a, b) => a.tsMs - b.tsMs);
        const samples = pending.map((point) => sampleOf("a", "x", point));
        const { found } = await readAll([{ apId: "a", metric: "x", points: sorted }], samples, { fromMs, toMs });
        const expected = new Map([...pending, ...stored].map((point) => [point.tsMs, point]));
        const inRange = [...expected.values()].filter(({ tsMs }) => tsMs >= fromMs && tsMs <= toMs);
        expect(found.get("a x") ?? []).toEqual(inRange.toSorted((a, b) => a.tsMs - b.tsMs));
      }),
    );
  });
});
