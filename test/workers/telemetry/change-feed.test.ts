import { describe, expect, it } from "vitest";
import { ChangeFeed, type ChangeFeedOptions, type FeedCursor } from "../../../src/telemetry/shard/change-feed.ts";

const sample = (apId: string, tsMs: number) => ({ apId, tsMs, metrics: { m: tsMs }, texts: {} });
const times = ({ samples }: { samples: { tsMs: number }[] }) => samples.map(({ tsMs }) => tsMs);

describe("the change feed", () => {
  const feedOf = (limits: Partial<ChangeFeedOptions> = {}) => {
    const clock = { ms: 0 };
    const all = { maxSamples: 10, maxLength: 10_000, maxTotalLength: 100_000, maxFollowed: 10, followedMs: 1_000 };
    return { clock, feed: new ChangeFeed({ ...all, ...limits, now: () => clock.ms }) };
  };

  it("returns the samples of one agent after a cursor, in the order of their commits", async () => {
    const { feed } = feedOf();
    feed.add([sample("a", 1)]);
    const { place } = await feed.since("a", undefined, 0);
    feed.add([sample("a", 3), sample("b", 9), sample("a", 2)]);
    const first = await feed.since("a", place, 0);
    expect([times(first), first.isIncomplete]).toEqual([[3, 2], false]);
    feed.add([sample("a", 4)]);
    expect(times(await feed.since("a", first.place, 0))).toEqual([4]);
    // A read can be repeated.
    expect(times(await feed.since("a", place, 0))).toEqual([3, 2, 4]);
  });

  it("returns the samples of several agents in pages, in the order of their commits", () => {
    const { feed, clock } = feedOf({ maxSamples: 3 });
    const { place, ...none } = feed.sinceMany(["a", "b"], undefined, 10);
    expect(none).toEqual({ samples: [], hasMore: false });
    feed.add([sample("a", 1), sample("c", 9), sample("b", 2), sample("a", 3)]);
    const first = feed.sinceMany(["a", "b", "c"], place, 2);
    expect([times(first), first.hasMore]).toEqual([[1, 2], true]);
    const second = feed.sinceMany(["a", "b", "c"], first.place, 2);
    expect([times(second), second.hasMore]).toEqual([[3], false]);
    feed.add([sample("c", 10)]);
    expect(times(feed.sinceMany(["b", "c"], second.place, 2))).toEqual([10]);
    // Dropped samples are left out.
    feed.add([4, 5, 6, 7].map((tsMs) => sample("a", tsMs)));
    expect(times(feed.sinceMany(["a"], second.place, 10))).toEqual([5, 6, 7]);
    clock.ms = 1_001;
    expect(times(feed.sinceMany(["a"], second.place, 10))).toEqual([]);
    expect(feedOf().feed.sinceMany(["a"], second.place, 10).samples).toEqual([]);
  });

  it("wakes all readers that wait for an agent", async () => {
    const { feed } = feedOf();
    const { place } = await feed.since("a", undefined, 0);
    const waiting = [feed.since("a", place, 60_000), feed.since("a", place, 60_000)];
    feed.add([sample("a", 1)]);
    expect((await Promise.all(waiting)).map(times)).toEqual([[1], [1]]);
    expect(times(await feed.since("a", (await feed.since("a", place, 0)).place, 1))).toEqual([]);
  });

  it("reports missing samples: too many, too old, or from another object", async () => {
    const { feed, clock } = feedOf({ maxSamples: 2 });
    const { place } = await feed.since("a", undefined, 0);
    feed.add([sample("a", 1), sample("a", 2), sample("a", 3)]);
    expect(await feed.since("a", place, 0)).toMatchObject({ isIncomplete: true, samples: [] });
    const { place: later } = await feed.since("a", place, 0);
    clock.ms = 1_001;
    feed.add([sample("a", 4)]);
    expect(feed.followed).toBe(0);
    expect(await feed.since("a", later, 0)).toMatchObject({ isIncomplete: true });
    expect(await feedOf().feed.since("a", later, 0)).toMatchObject({ isIncomplete: true });
  });

  it("drops the oldest samples of an agent when their texts take too much memory", async () => {
    const { feed } = feedOf({ maxLength: 1_000 });
    const { place } = await feed.since("a", undefined, 0);
    const long = (tsMs: number) => ({ ...sample("a", tsMs), texts: { t: "x".repeat(600) } });
    feed.add([long(1)]);
    const first = await feed.since("a", place, 0);
    expect(times(first)).toEqual([1]);
    feed.add([long(2)]);
    expect(times(await feed.since("a", first.place, 0))).toEqual([2]);
    expect(await feed.since("a", place, 0)).toMatchObject({ isIncomplete: true, samples: [] });
  });

  it("drops the samples of the least recently read agent when all together take too much memory", async () => {
    const { feed } = feedOf({ maxTotalLength: 2_000 });
    const [{ place: a }, { place: b }] = [await feed.since("a", undefined, 0), await feed.since("b", undefined, 0)];
    const long = (apId: string, tsMs: number) => ({ ...sample(apId, tsMs), texts: { t: "x".repeat(600) } });
    feed.add([long("a", 1), long("b", 1)]);
    const { place: read } = await feed.since("a", a, 0);
    feed.add([long("a", 2)]);
    expect(await feed.since("b", b, 0)).toMatchObject({ isIncomplete: true, samples: [] });
    expect(times(await feed.since("a", a, 0))).toEqual([1, 2]);
    expect(times(await feed.since("a", read, 0))).toEqual([2]);
  });

  it("follows a limited number of agents and tells the readers of a dropped one that samples are missing", async () => {
    const { feed } = feedOf({ maxFollowed: 2 });
    const places = new Map<string, FeedCursor>();
    for (const apId of ["a", "b"]) places.set(apId, (await feed.since(apId, undefined, 0)).place);
    const waiting = feed.since("a", places.get("a"), 60_000);
    await feed.since("b", places.get("b"), 0);
    await feed.since("c", undefined, 0);
    expect(feed.followed).toBe(2);
    expect(await waiting).toMatchObject({ isIncomplete: true });
    feed.add([sample("b", 1)]);
    expect(times(await feed.since("b", places.get("b"), 0))).toEqual([1]);
    expect(await feed.since("a", places.get("a"), 0)).toMatchObject({ isIncomplete: true });
  });
});
