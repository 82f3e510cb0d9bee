import { describe, expect, it } from "vitest";
import { chosenMetrics } from "../../../src/dashboard/charts/chosen-metrics.ts";
import { usualStepMs, withGaps } from "../../../src/dashboard/charts/gaps.ts";
import {
  indexFrom,
  type MetricSeries,
  type ReceivedSeries,
  SeriesStore,
} from "../../../src/dashboard/charts/series-store.ts";
import { tickTexts } from "../../../src/dashboard/lib/format.ts";

const START_MS = Date.UTC(2026, 0, 1);
const at = (seconds: number): number => START_MS + seconds * 1_000;

/** Points at these seconds. The value of each is its second. */
const received = (seconds: readonly number[], more: Partial<ReceivedSeries> = {}): ReceivedSeries => ({
  metric: "load",
  points: seconds.map((second) => ({ ts: new Date(at(second)).toISOString(), value: second })),
  ...more,
});
const secondsOf = ({ times }: MetricSeries): number[] => times.map((timeMs) => (timeMs - START_MS) / 1_000);
const seriesAt = (seconds: readonly number[], bucketMs?: number): MetricSeries => ({
  times: seconds.map(at),
  values: [...seconds],
  bucketMs,
});

describe("SeriesStore", () => {
  it("appends new points, and each time only once", () => {
    const store = new SeriesStore();
    store.replace([received([1, 2, 3])]);
    store.append([received([2, 3, 4, 5])], at(1));
    expect(secondsOf(store.series("load"))).toEqual([1, 2, 3, 4, 5]);
    expect(store.series("load").values).toEqual([1, 2, 3, 4, 5]);
  });

  it("inserts late points in order, and replaces the value of a time by a later one", () => {
    const store = new SeriesStore();
    store.replace([received([1, 4])]);
    store.append([received([2, 3])], at(0));
    store.append([{ metric: "load", points: [{ ts: new Date(at(3)).toISOString(), value: 30 }] }], at(0));
    expect(secondsOf(store.series("load"))).toEqual([1, 2, 3, 4]);
    expect(store.series("load").values).toEqual([1, 2, 30, 4]);
  });

  it("drops points before the window", () => {
    const store = new SeriesStore();
    store.replace([received([1, 2, 3]), received([1], { metric: "users" })]);
    store.trim(at(2));
    expect(secondsOf(store.series("load"))).toEqual([2, 3]);
    expect(store.series("users").times).toEqual([]);
  });

  it("requests points from a little before the newest point of any metric", () => {
    const store = new SeriesStore();
    expect(store.sinceMs(at(100))).toBeUndefined();
    store.replace([received([10, 20]), received([90], { metric: "users" }), received([], { metric: "quality" })]);
    expect(store.sinceMs(at(100))).toBe(at(85));
  });

  it("ignores points ahead of the clock when it determines the time to request from", () => {
    const store = new SeriesStore();
    store.replace([received([10, 300])]);
    expect(store.sinceMs(at(11))).toBe(at(6));
  });

  it("recomputes the last mean from all its points, and appends means over buckets of the same length", () => {
    const store = new SeriesStore();
    store.replace([received([0, 10, 20], { bucket_ms: 10_000 })]);
    const sinceMs = store.sinceMs(at(31)) ?? 0;
    expect(sinceMs).toBeLessThan(at(20));
    store.append([received([18, 20, 22, 24, 30, 34])], sinceMs);
    expect(secondsOf(store.series("load"))).toEqual([0, 10, 20, 30]);
    expect(store.series("load").values).toEqual([0, 10, 22, 32]);
  });

  it("does not recompute a mean of which only some points were requested", () => {
    const store = new SeriesStore();
    store.replace([
      received([0, 10], { bucket_ms: 10_000 }),
      received([0, 10, 20], { metric: "users", bucket_ms: 10_000 }),
    ]);
    store.append([received([19, 25])], at(15));
    expect(secondsOf(store.series("load"))).toEqual([0, 10, 20]);
    expect(store.series("load").values).toEqual([0, 10, 25]);
  });

  it("requests all points of the newest mean, also if points of another metric are newer", () => {
    const store = new SeriesStore();
    store.replace([received([0, 60], { bucket_ms: 60_000 }), received([110], { metric: "users" })]);
    expect(store.sinceMs(at(111))).toBe(at(60) - 1);
  });

  it("ignores points of a metric that it does not have", () => {
    const store = new SeriesStore();
    store.append([received([1])], at(0));
    expect(store.series("load").times).toEqual([]);
  });

  it("finds the index of the first time that is not before another", () => {
    const times = [1, 3, 5];
    expect([0, 1, 2, 5, 6].map((time) => indexFrom(times, time))).toEqual([0, 0, 1, 2, 3]);
  });
});

describe("withGaps", () => {
  it("returns the arrays of the series if no point is missing", () => {
    const whole = seriesAt([1, 2, 3, 4]);
    const { times, values, isolated } = withGaps(whole);
    expect(times).toBe(whole.times);
    expect(values).toBe(whole.values);
    expect(isolated).toEqual([]);
  });

  it("breaks the line at steps longer than three usual ones", () => {
    const { times, values } = withGaps(seriesAt([1, 2, 3, 6, 7, 8, 12, 13]));
    expect(values).toEqual([1, 2, 3, 6, 7, 8, null, 12, 13]);
    expect(times[6]).toBe(at(10));
    expect(times).toEqual([...times].sort((a, b) => a - b));
  });

  it("uses the length of the buckets as the usual step if it is longer", () => {
    expect(withGaps(seriesAt([0, 1, 2, 30], 10_000)).values).toEqual([0, 1, 2, 30]);
    expect(withGaps(seriesAt([0, 10, 20, 51], 10_000)).values).toEqual([0, 10, 20, null, 51]);
  });

  it("lists isolated points, which a line does not show", () => {
    const { values, isolated } = withGaps(seriesAt([0, 1, 2, 3, 20, 40, 41, 42]));
    expect(values).toEqual([0, 1, 2, 3, null, 20, null, 40, 41, 42]);
    expect(isolated).toEqual([5]);
    expect(withGaps(seriesAt([7])).isolated).toEqual([0]);
    expect(withGaps(seriesAt([])).isolated).toEqual([]);
  });

  it("determines the usual step of a long series from a sample", () => {
    const seconds = Array.from({ length: 5_000 }, (_, i) => i * 2 + (i > 2_500 ? 600 : 0));
    expect(usualStepMs(seconds.map(at))).toBe(2_000);
    expect(usualStepMs([])).toBe(0);
  });
});

describe("tickTexts", () => {
  it("shortens numbers", () => {
    expect(tickTexts([0, 12_500, 25_000])).toEqual(["0", "12.5k", "25k"]);
  });

  it("returns distances from the first if short numbers are equal", () => {
    expect(tickTexts([1_795_000_000, 1_795_000_100, 1_795_000_200])).toEqual(["1.795bn", "+100", "+200"]);
  });

  it("returns nothing for an axis without values", () => {
    expect(tickTexts([])).toEqual([]);
  });
});

describe("the metrics that are shown at first", () => {
  it("are the most useful ones of the technology", () => {
    expect(chosenMetrics(null, "WiFi", ["blockage", "load", "snr_db", "users"])).toEqual(["load", "users", "snr_db"]);
  });

  it("are of different families if another system reports them", () => {
    const reported = ['cpu.idle{cpu="0"}', "cpu.user", "go_threads", "mem.free", "mem.used", "up"];
    expect(chosenMetrics(null, null, reported)).toEqual(['cpu.idle{cpu="0"}', "go_threads", "mem.free", "up"]);
    expect(chosenMetrics(null, null, ["cpu.idle", "cpu.user", "mem.used"])).toEqual([
      "cpu.idle",
      "mem.used",
      "cpu.user",
    ]);
  });

  it("are those in the address", () => {
    expect(chosenMetrics("users,load,users", "WiFi", ["load"])).toEqual(["users", "load"]);
  });
});
