import { describe, expect, it } from "vitest";
import { usualStepMs, withGaps } from "../../../src/dashboard/charts/gaps.ts";
import { indexFrom, type SentSeries, SeriesStore, type Track } from "../../../src/dashboard/charts/series-store.ts";

const START_MS = Date.UTC(2026, 0, 1);
const at = (seconds: number): number => START_MS + seconds * 1_000;

/** Points at these seconds; each has its second as its value, unless said otherwise. */
const sent = (seconds: readonly number[], more: Partial<SentSeries> = {}): SentSeries => ({
  metric: "load",
  points: seconds.map((second) => ({ ts: new Date(at(second)).toISOString(), value: second })),
  ...more,
});
const secondsOf = ({ times }: Track): number[] => times.map((timeMs) => (timeMs - START_MS) / 1_000);
const track = (seconds: readonly number[], bucketMs?: number): Track => ({
  times: seconds.map(at),
  values: [...seconds],
  bucketMs,
});

describe("the store of a chart's points", () => {
  it("adds what is new behind what is there, and each time only once", () => {
    const store = new SeriesStore();
    store.replace([sent([1, 2, 3])]);
    store.append([sent([2, 3, 4, 5])], at(1));
    expect(secondsOf(store.track("load"))).toEqual([1, 2, 3, 4, 5]);
    expect(store.track("load").values).toEqual([1, 2, 3, 4, 5]);
  });

  it("puts in its place what came late, and takes the later word for the same time", () => {
    const store = new SeriesStore();
    store.replace([sent([1, 4])]);
    store.append([sent([2, 3])], at(0));
    store.append([{ metric: "load", points: [{ ts: new Date(at(3)).toISOString(), value: 30 }] }], at(0));
    expect(secondsOf(store.track("load"))).toEqual([1, 2, 3, 4]);
    expect(store.track("load").values).toEqual([1, 2, 30, 4]);
  });

  it("drops what has fallen out of the window", () => {
    const store = new SeriesStore();
    store.replace([sent([1, 2, 3]), sent([1], { metric: "users" })]);
    store.trim(at(2));
    expect(secondsOf(store.track("load"))).toEqual([2, 3]);
    expect(store.track("users").times).toEqual([]);
  });

  it("asks from a little before the newest point on, of whichever metric", () => {
    const store = new SeriesStore();
    expect(store.sinceMs(at(100))).toBeUndefined();
    store.replace([sent([10, 20]), sent([90], { metric: "users" }), sent([], { metric: "quality" })]);
    expect(store.sinceMs(at(100))).toBe(at(85));
  });

  it("is not led astray by a clock that is ahead", () => {
    const store = new SeriesStore();
    store.replace([sent([10, 300])]);
    expect(store.sinceMs(at(11))).toBe(at(6));
  });

  it("goes on with means: the last one with all of its points, then others in the same steps", () => {
    const store = new SeriesStore();
    store.replace([sent([0, 10, 20], { bucket_ms: 10_000 })]);
    const sinceMs = store.sinceMs(at(31)) ?? 0;
    expect(sinceMs).toBeLessThan(at(20));
    store.append([sent([18, 20, 22, 24, 30, 34])], sinceMs);
    expect(secondsOf(store.track("load"))).toEqual([0, 10, 20, 30]);
    expect(store.track("load").values).toEqual([0, 10, 22, 32]);
  });

  it("leaves a mean alone of which it has not all points", () => {
    const store = new SeriesStore();
    store.replace([sent([0, 10], { bucket_ms: 10_000 }), sent([0, 10, 20], { metric: "users", bucket_ms: 10_000 })]);
    store.append([sent([19, 25])], at(15));
    expect(secondsOf(store.track("load"))).toEqual([0, 10, 20]);
    expect(store.track("load").values).toEqual([0, 10, 25]);
  });

  it("asks for the whole of the newest mean, also where single points of another metric are newer", () => {
    const store = new SeriesStore();
    store.replace([sent([0, 60], { bucket_ms: 60_000 }), sent([110], { metric: "users" })]);
    expect(store.sinceMs(at(111))).toBe(at(60) - 1);
  });

  it("knows nothing of a metric that it was not given", () => {
    const store = new SeriesStore();
    store.append([sent([1])], at(0));
    expect(store.track("load").times).toEqual([]);
  });

  it("finds the first time that is not before another", () => {
    const times = [1, 3, 5];
    expect([0, 1, 2, 5, 6].map((time) => indexFrom(times, time))).toEqual([0, 0, 1, 2, 3]);
  });
});

describe("the line of a chart", () => {
  it("is the points themselves where none is missing", () => {
    const whole = track([1, 2, 3, 4]);
    const { times, values, lonely } = withGaps(whole);
    expect(times).toBe(whole.times);
    expect(values).toBe(whole.values);
    expect(lonely).toEqual([]);
  });

  it("breaks where nothing was heard for more than three of the usual steps", () => {
    const { times, values } = withGaps(track([1, 2, 3, 6, 7, 8, 12, 13]));
    expect(values).toEqual([1, 2, 3, 6, 7, 8, null, 12, 13]);
    expect(times[6]).toBe(at(10));
    expect(times).toEqual([...times].sort((a, b) => a - b));
  });

  it("takes the span of the means for the usual step, where that is longer", () => {
    expect(withGaps(track([0, 1, 2, 30], 10_000)).values).toEqual([0, 1, 2, 30]);
    expect(withGaps(track([0, 10, 20, 51], 10_000)).values).toEqual([0, 10, 20, null, 51]);
  });

  it("names points that stand alone, which a line would not show", () => {
    const { values, lonely } = withGaps(track([0, 1, 2, 3, 20, 40, 41, 42]));
    expect(values).toEqual([0, 1, 2, 3, null, 20, null, 40, 41, 42]);
    expect(lonely).toEqual([5]);
    expect(withGaps(track([7])).lonely).toEqual([0]);
    expect(withGaps(track([])).lonely).toEqual([]);
  });

  it("knows the usual step of a long track from some of its steps", () => {
    const seconds = Array.from({ length: 5_000 }, (_, i) => i * 2 + (i > 2_500 ? 600 : 0));
    expect(usualStepMs(seconds.map(at))).toBe(2_000);
    expect(usualStepMs([])).toBe(0);
  });
});
