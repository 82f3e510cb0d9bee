import { describe, expect, it } from "vitest";
import { ChangeFeed, type ChangeFeedOptions, type FeedCursor } from "../../../src/telemetry/shard/change-feed.ts";

const sample = (apId: string, tsMs: number) => ({ apId, tsMs, metrics: { m: tsMs }, texts: {} });
const times = ({ samples }: { samples: { tsMs: number }[] }) => samples.map(({ tsMs }) => tsMs);

describe("news", () => {
  const newsOf = (limits: Partial<ChangeFeedOptions> = {}) => {
    const clock = { ms: 0 };
    const all = { maxSamples: 10, maxLength: 10_000, maxTotalLength: 100_000, maxFollowed: 10, followedMs: 1_000 };
    return { clock, news: new ChangeFeed({ ...all, ...limits, now: () => clock.ms }) };
  };

  it("are what came after a place, of one agent, in the order of its coming", async () => {
    const { news } = newsOf();
    news.add([sample("a", 1)]);
    const { place } = await news.since("a", undefined, 0);
    news.add([sample("a", 3), sample("b", 9), sample("a", 2)]);
    const first = await news.since("a", place, 0);
    expect([times(first), first.isIncomplete]).toEqual([[3, 2], false]);
    news.add([sample("a", 4)]);
    expect(times(await news.since("a", first.place, 0))).toEqual([4]);
    // The same question has the same answer: it may be asked again.
    expect(times(await news.since("a", place, 0))).toEqual([3, 2, 4]);
  });

  it("wake whoever waits for them, all of them", async () => {
    const { news } = newsOf();
    const { place } = await news.since("a", undefined, 0);
    const waiting = [news.since("a", place, 60_000), news.since("a", place, 60_000)];
    news.add([sample("a", 1)]);
    expect((await Promise.all(waiting)).map(times)).toEqual([[1], [1]]);
    expect(times(await news.since("a", (await news.since("a", place, 0)).place, 1))).toEqual([]);
  });

  it("say so where something is not remembered: too many, too long ago, or in another memory", async () => {
    const { news, clock } = newsOf({ maxSamples: 2 });
    const { place } = await news.since("a", undefined, 0);
    news.add([sample("a", 1), sample("a", 2), sample("a", 3)]);
    expect(await news.since("a", place, 0)).toMatchObject({ isIncomplete: true, samples: [] });
    const { place: later } = await news.since("a", place, 0);
    clock.ms = 1_001;
    news.add([sample("a", 4)]);
    expect(news.followed).toBe(0);
    expect(await news.since("a", later, 0)).toMatchObject({ isIncomplete: true });
    expect(await newsOf().news.since("a", later, 0)).toMatchObject({ isIncomplete: true });
  });

  it("are forgotten, the oldest first, where their texts are too long to be remembered", async () => {
    const { news } = newsOf({ maxLength: 1_000 });
    const { place } = await news.since("a", undefined, 0);
    const long = (tsMs: number) => ({ ...sample("a", tsMs), texts: { t: "x".repeat(600) } });
    news.add([long(1)]);
    const first = await news.since("a", place, 0);
    expect(times(first)).toEqual([1]);
    news.add([long(2)]);
    expect(times(await news.since("a", first.place, 0))).toEqual([2]);
    expect(await news.since("a", place, 0)).toMatchObject({ isIncomplete: true, samples: [] });
  });

  it("of all agents together are forgotten first of those that were not asked for the longest time", async () => {
    const { news } = newsOf({ maxTotalLength: 2_000 });
    const [{ place: a }, { place: b }] = [await news.since("a", undefined, 0), await news.since("b", undefined, 0)];
    const long = (apId: string, tsMs: number) => ({ ...sample(apId, tsMs), texts: { t: "x".repeat(600) } });
    news.add([long("a", 1), long("b", 1)]);
    const { place: read } = await news.since("a", a, 0);
    news.add([long("a", 2)]);
    expect(await news.since("b", b, 0)).toMatchObject({ isIncomplete: true, samples: [] });
    expect(times(await news.since("a", a, 0))).toEqual([1, 2]);
    expect(times(await news.since("a", read, 0))).toEqual([2]);
  });

  it("are of so many agents at the most: a reader whose agent gave way hears that something is missing", async () => {
    const { news } = newsOf({ maxFollowed: 2 });
    const places = new Map<string, FeedCursor>();
    for (const apId of ["a", "b"]) places.set(apId, (await news.since(apId, undefined, 0)).place);
    const waiting = news.since("a", places.get("a"), 60_000);
    await news.since("b", places.get("b"), 0);
    await news.since("c", undefined, 0);
    expect(news.followed).toBe(2);
    expect(await waiting).toMatchObject({ isIncomplete: true });
    news.add([sample("b", 1)]);
    expect(times(await news.since("b", places.get("b"), 0))).toEqual([1]);
    expect(await news.since("a", places.get("a"), 0)).toMatchObject({ isIncomplete: true });
  });
});
