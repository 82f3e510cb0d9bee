import { env } from "cloudflare:test";
import * as fc from "fast-check";
import { describe, expect, it, vi } from "vitest";
import { Unavailable } from "../../../src/lib/errors.ts";
import type { Appended } from "../../../src/telemetry/shard/agent-shard.ts";
import { CallBatcher } from "../../../src/telemetry/shard/call-batcher.ts";
import { Deduplicator } from "../../../src/telemetry/shard/deduplicator.ts";
import { GroupCommit } from "../../../src/telemetry/shard/group-commit.ts";
import { createShardClient } from "../../../src/telemetry/shard/shard-client.ts";
import type { AgentSample } from "../../../src/telemetry/store/telemetry-store.ts";
import { testStore, uniqueName } from "../support.ts";

const away = () => new Unavailable("store", new Error("away"));

describe("a group commit", () => {
  const options = {
    select: async (items: readonly number[]) => items,
    isRefused: () => false,
    gatherMs: 1,
    maxBatch: 100,
    maxBatchLength: 1_000,
    maxWaiting: 150,
    maxWaitingLength: 2_000,
    now: Date.now,
  };

  it("commits what many bring in few batches, and answers each after its own", async () => {
    const batches: number[][] = [];
    const commits = new GroupCommit<number>({ ...options, commit: async (items) => void batches.push([...items]) });
    await Promise.all(Array.from({ length: 60 }, (_, i) => commits.add([i], 1)));
    expect(batches.flat().toSorted((a, b) => a - b)).toEqual(Array.from({ length: 60 }, (_, i) => i));
    expect(batches.length).toBeLessThan(5);
  });

  it("settles a batch in doubt, under its own token, before anything else", async () => {
    const tries: [number, string][] = [];
    let isAway = true;
    const commits = new GroupCommit<number>({
      ...options,
      commit: async ([item = 0], token) => {
        tries.push([item, token]);
        if (isAway) throw away();
      },
    });
    await expect(commits.add([1], 1)).rejects.toThrow(Unavailable);
    await expect(commits.add([2], 1)).rejects.toThrow(Unavailable);
    isAway = false;
    await commits.add([3], 1);
    await commits.add([4], 1);
    expect(tries.map(([item]) => item)).toEqual([1, 1, 1, 3, 4]);
    expect(new Set(tries.slice(0, 3).map(([, token]) => token)).size).toBe(1);
    expect(new Set(tries.map(([, token]) => token)).size).toBe(3);
  });

  it("tells those who wait behind a batch that the store did not take at once, not after as long again", async () => {
    const underWay = Promise.withResolvers<void>();
    const committed: number[] = [];
    const commits = new GroupCommit<number>({
      ...options,
      commit: async (items) => {
        if (items.includes(1)) await underWay.promise;
        committed.push(...items);
      },
    });
    const first = commits.add([1], 1);
    await new Promise((resolve) => setTimeout(resolve, 20));
    const behind = commits.add([2], 1);
    underWay.reject(away());
    await expect(first).rejects.toThrow(Unavailable);
    await expect(behind).rejects.toThrow(Unavailable);
    expect(committed).toEqual([]);
  });

  it.each([
    { what: "the store does not take", isRefused: true, untilMs: 60_000 },
    { what: "stays in doubt, the store being away", isRefused: false, untilMs: 900_000 },
  ])("lets go of a batch that $what, after $untilMs ms and not before", async ({ isRefused, untilMs }) => {
    const clock = { ms: 0 };
    const tries: number[] = [];
    const commits = new GroupCommit<number>({
      ...options,
      isRefused: () => isRefused,
      now: () => clock.ms,
      commit: async ([item = 0]) => {
        tries.push(item);
        if (item < 2) throw away();
      },
    });
    await expect(commits.add([1], 1)).rejects.toThrow(Unavailable);
    for (clock.ms = untilMs - 1; clock.ms <= untilMs; clock.ms++)
      await expect(commits.add([2], 1)).rejects.toThrow(Unavailable);
    await commits.add([2], 1);
    expect(tries).toEqual([1, 1, 1, 2]);
  });

  it("commits all but the items that are wrong in themselves, each part under a token of its own", async () => {
    const tokens: string[] = [];
    const committed: number[] = [];
    const commits = new GroupCommit<number>({
      ...options,
      commit: async (items, token) => {
        tokens.push(token);
        if (items.some((item) => item % 40 === 7)) throw new Error("wrong");
        committed.push(...items);
      },
    });
    const rejected = await Promise.all(
      Array.from({ length: 25 }, (_, i) => commits.add([4 * i, 4 * i + 1, 4 * i + 2, 4 * i + 3], 4)),
    );
    const wrong = [7, 47, 87];
    expect(rejected.flat().map(({ item, error }) => [item, String(error)])).toEqual(
      wrong.map((item) => [item, "Error: wrong"]),
    );
    // Only those who brought a wrong one hear of it.
    expect(rejected.flatMap((its, i) => (its.length > 0 ? [i] : []))).toEqual(
      wrong.map((item) => Math.floor(item / 4)),
    );
    expect(committed.toSorted((a, b) => a - b)).toEqual(
      Array.from({ length: 100 }, (_, i) => i).filter((i) => !wrong.includes(i)),
    );
    expect(new Set(tokens).size).toBe(tokens.length);
    expect(tokens.length).toBeLessThan(50);
  });

  it("settles a part in doubt of a batch that was rejected, under that part's token", async () => {
    const tries: [readonly number[], string][] = [];
    let isAway = true;
    const commits = new GroupCommit<number>({
      ...options,
      commit: async (items, token) => {
        tries.push([items, token]);
        if (items.includes(2)) throw new Error("wrong");
        if (isAway) throw away();
      },
    });
    await expect(commits.add([1, 2], 2)).rejects.toThrow(Unavailable);
    isAway = false;
    expect(await commits.add([1, 2], 2)).toMatchObject([{ item: 2 }]);
    expect(tries.map(([items]) => items)).toEqual([[1, 2], [1], [1], [1, 2], [1], [2]]);
    expect(tries[1]?.[1]).toBe(tries[2]?.[1]);
    expect(new Set(tries.map(([, token]) => token)).size).toBe(5);
  });

  it("gives up the search for wrong items after 100 commits, and goes on", async () => {
    let tries = 0;
    const commits = new GroupCommit<number>({
      ...options,
      commit: async (items) => {
        tries++;
        if (items.includes(1)) throw new Error("wrong");
      },
    });
    const many = Array.from({ length: 100 }, () => 1);
    expect(await commits.add(many, 100)).toHaveLength(100);
    expect(tries).toBeLessThanOrEqual(110);
    expect(await commits.add([2], 1)).toEqual([]);
  });

  it("does not let callers fail because a batch in doubt before theirs turns out to be wrong", async () => {
    const answers = [away(), new Error("wrong")];
    const committed: number[] = [];
    const commits = new GroupCommit<number>({
      ...options,
      commit: async (items) => {
        const answer = answers.shift();
        if (answer !== undefined) throw answer;
        committed.push(...items);
      },
    });
    await expect(commits.add([1], 1)).rejects.toThrow(Unavailable);
    expect(await commits.add([2], 1)).toEqual([]);
    expect(committed).toEqual([2]);
  });

  it("commits each lane by itself, and the present after one batch of a backlog at the most", async () => {
    const batches: number[][] = [];
    const first = Promise.withResolvers<void>();
    const commits = new GroupCommit<number>({
      ...options,
      laneOf: (item) => (item < 100 ? undefined : Math.floor(item / 100)),
      commit: async (items) => {
        batches.push([...items]);
        if (batches.length === 1) await first.promise;
      },
    });
    const backlog = commits.add([100, 200, 300, 101, 400], 5);
    await vi.waitFor(() => expect(batches).toHaveLength(1));
    const present = commits.add([1], 1).then(() => batches.length);
    const other = commits.add([201, 2], 2);
    first.resolve();
    expect(await present).toBeLessThanOrEqual(2);
    await Promise.all([backlog, other]);
    expect(batches).toEqual([[100, 101], [1, 2], [200, 201], [300], [400]]);
  });

  it("puts no more than so many characters in a batch, and lets no more wait", async () => {
    const batches: number[][] = [];
    const held = Promise.withResolvers<void>();
    const commits = new GroupCommit<number>({
      ...options,
      commit: async (items) => {
        batches.push([...items]);
        await held.promise;
      },
    });
    const all = [commits.add([1], 600), commits.add([2], 600), commits.add([3], 400)];
    await expect(commits.add([4], 401)).rejects.toThrow(Unavailable);
    held.resolve();
    await Promise.all(all);
    // What is larger by itself goes by itself.
    await commits.add([5], 1_500);
    expect(batches).toEqual([[1], [2, 3], [5]]);
  });

  it("commits nothing where nothing is new", async () => {
    const tries: number[] = [];
    const commits = new GroupCommit<number>({
      ...options,
      select: async () => [],
      commit: async (items) => void tries.push(...items),
    });
    await commits.add([1], 1);
    expect(tries).toEqual([]);
  });

  it("refuses what is too much, and goes on with the rest", async () => {
    const held = Promise.withResolvers<void>();
    const commits = new GroupCommit<number>({ ...options, commit: () => held.promise });
    const first = commits.add(
      Array.from({ length: 100 }, () => 1),
      1,
    );
    await expect(
      commits.add(
        Array.from({ length: 100 }, () => 1),
        1,
      ),
    ).rejects.toThrow(Unavailable);
    held.resolve();
    await first;
    await commits.add([1], 1);
  });
});

describe("shared calls", () => {
  const options = { part: "store", gatherMs: 5, maxWeight: 10, timeoutMs: 1_000 };

  it("are one for what comes within a moment, and each caller gets its outcome", async () => {
    const calls: number[][] = [];
    const isBad = (items: readonly number[]) => items.includes(3);
    const shared = new CallBatcher<number, number>({
      ...options,
      call: async (items) => {
        calls.push([...items]);
        if (isBad(items)) throw away();
        return items.map((item) => -item);
      },
    });
    expect(await Promise.all([shared.add(1, 1), shared.add(2, 1)])).toEqual([-1, -2]);
    const outcomes = await Promise.allSettled([shared.add(3, 1), shared.add(4, 1)]);
    expect(outcomes.map(({ status }) => status)).toEqual(["rejected", "rejected"]);
    await shared.add(5, 1);
    expect(calls).toEqual([[1, 2], [3, 4], [5]]);
  });

  it("take no more together than is allowed, and what is too heavy by itself", async () => {
    const calls: number[][] = [];
    const shared = new CallBatcher<number, number>({
      ...options,
      call: async (items) => {
        calls.push([...items]);
        return items;
      },
    });
    await Promise.all([shared.add(1, 6), shared.add(2, 4), shared.add(3, 1), shared.add(4, 50), shared.add(5, 1)]);
    expect(calls).toEqual([[1, 2], [3], [4], [5]]);
  });

  it("keep nobody waiting for ever", async () => {
    const never = Promise.withResolvers<number[]>();
    const shared = new CallBatcher<number, number>({ ...options, timeoutMs: 20, call: () => never.promise });
    await expect(shared.add(1, 1)).rejects.toThrow(Unavailable);
    never.resolve([]);
  });
});

describe("a shard", () => {
  const textOf = (samples: readonly AgentSample[]) => JSON.stringify(samples).slice(1, -1);
  const shard = () => env.AGENT_SHARD.get(env.AGENT_SHARD.idFromName(uniqueName()));
  const sample = (apId: string, tsMs: number, texts: Record<string, string> = {}): AgentSample => ({
    ...{ apId, tsMs, metrics: { m: 1 }, texts },
  });

  it("commits all but the sample that ClickHouse rejects, in the same and in other calls", async () => {
    const [apId, other, nowMs] = [uniqueName(), uniqueName(), Date.now()];
    const one = shard();
    const outcomes = await Promise.all([
      one.append(textOf([sample(apId, nowMs - 2), sample(apId, nowMs - 1, { t: "\ud800" }), sample(apId, nowMs)])),
      one.append(textOf([sample(other, nowMs)])),
    ]);
    expect(outcomes).toEqual([{ rejected: [1] }, "committed"]);
    const stored = await testStore().stored(
      [apId, other].flatMap((name) => [-2, -1, 0].map((n) => sample(name, nowMs + n))),
    );
    expect(stored.map(({ apId, tsMs }) => `${apId} ${tsMs - nowMs}`).toSorted()).toEqual(
      [`${apId} -2`, `${apId} 0`, `${other} 0`].toSorted(),
    );
  });

  it("commits the present while a backlog of two years waits", async () => {
    const [late, present, nowMs] = [uniqueName(), uniqueName(), Date.now()];
    const one = shard();
    const ended: [string, Appended][] = [];
    const backlog = Array.from({ length: 100 }, (_, week) => sample(late, nowMs - week * 7 * 86_400_000));
    await Promise.all([
      one.append(textOf(backlog)).then((outcome) => ended.push(["backlog", outcome])),
      one.append(textOf([sample(present, nowMs)])).then((outcome) => ended.push(["present", outcome])),
    ]);
    expect(ended).toEqual([
      ["present", "committed"],
      ["backlog", "committed"],
    ]);
  });
});

describe("the way to a shard", () => {
  it("refuses what would make more than 32 MiB wait in one Worker, and goes on with the rest", async () => {
    const held = Promise.withResolvers<Appended>();
    const namespace = { idFromName: (name: string) => ({ name }), get: () => ({ append: () => held.promise }) };
    const shards = createShardClient(namespace as unknown as typeof env.AGENT_SHARD, 1);
    const append = () =>
      shards.append([{ apId: "a", tsMs: Date.now(), metrics: {}, texts: { t: "x".repeat(10 * 1024 * 1024) } }]);
    const waiting = [append(), append(), append()];
    await expect(append()).rejects.toThrow(Unavailable);
    held.resolve("committed");
    await Promise.all(waiting);
    expect(await append()).toEqual(new Set());
  });
});

describe("novelty", () => {
  it("does not take an old sample that was in doubt for the newest of its agent", async () => {
    const sample = (tsMs: number): AgentSample => ({ apId: "a", tsMs, metrics: { m: 1 }, texts: {} });
    const novelty = new Deduplicator({
      newestSamples: async () => new Map([["a", 100]]),
      stored: async (samples) => samples.map(({ apId, tsMs }) => ({ apId, tsMs, metric: "m" })),
    });
    await novelty.only([sample(50)]);
    novelty.forget([sample(50)]);
    novelty.committed([sample(50)]);
    expect(await novelty.only([sample(100)])).toEqual([{ ...sample(100), metrics: {} }]);
  });

  it("is a value whose agent, metric and time are not stored: in any order, sent again, before and after it forgot", async () => {
    const store = testStore();
    const drawn = fc.record({
      agent: fc.integer({ min: 0, max: 1 }),
      second: fc.integer({ min: 0, max: 5 }),
      metrics: fc.dictionary(fc.constantFrom("a", "b"), fc.integer(), { minKeys: 1 }),
    });
    const step = fc.oneof(
      fc.array(drawn, { minLength: 1, maxLength: 5 }).map((samples) => ({ samples })),
      fc.constant("forget" as const),
    );
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 6 }), async (steps) => {
        const run = uniqueName();
        const startMs = Date.now() - 60_000;
        const novelty = new Deduplicator(store);
        const model = new Map<string, number>();
        for (const step of steps) {
          const samples: AgentSample[] =
            step === "forget"
              ? [0, 1].map((agent) => ({ apId: `${run}-${agent}`, tsMs: 0, metrics: {}, texts: {} }))
              : step.samples.map(({ agent, second, metrics }) => ({
                  apId: `${run}-${agent}`,
                  tsMs: startMs + second * 1000,
                  metrics,
                  texts: {},
                }));
          if (step === "forget") {
            novelty.forget(samples);
            continue;
          }
          const expected: [string, number][] = [];
          for (const { apId, tsMs, metrics } of samples) {
            for (const [metric, value] of Object.entries(metrics)) {
              const name = `${apId} ${tsMs} ${metric}`;
              if (model.has(name)) continue;
              model.set(name, value);
              expected.push([name, value]);
            }
          }
          const fresh = await novelty.only(samples);
          const found = fresh.flatMap(({ apId, tsMs, metrics }) =>
            Object.entries(metrics).map(([metric, value]) => [`${apId} ${tsMs} ${metric}`, value]),
          );
          expect(found.toSorted()).toEqual(expected.toSorted());
          if (fresh.length > 0) await store.insert(fresh, crypto.randomUUID());
          novelty.committed(fresh);
        }
      }),
      { numRuns: 15 },
    );
  }, 60_000);
});
