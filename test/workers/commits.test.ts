import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { Unavailable } from "../../src/errors.ts";
import { GroupCommit } from "../../src/telemetry/group-commit.ts";
import { Novelty } from "../../src/telemetry/novelty.ts";
import { SharedCalls } from "../../src/telemetry/shared-calls.ts";
import type { AgentSample } from "../../src/telemetry/store.ts";
import { testStore, uniqueName } from "./support.ts";

const away = () => new Unavailable("store", new Error("away"));

describe("a group commit", () => {
  const options = {
    select: async (items: readonly number[]) => items,
    isRefused: () => false,
    gatherMs: 1,
    maxBatch: 100,
    maxWaiting: 150,
    now: Date.now,
  };

  it("commits what many bring in few batches, and answers each after its own", async () => {
    const batches: number[][] = [];
    const commits = new GroupCommit<number>({ ...options, commit: async (items) => void batches.push([...items]) });
    await Promise.all(Array.from({ length: 60 }, (_, i) => commits.add([i])));
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
    await expect(commits.add([1])).rejects.toThrow(Unavailable);
    await expect(commits.add([2])).rejects.toThrow(Unavailable);
    isAway = false;
    await commits.add([3]);
    await commits.add([4]);
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
    const first = commits.add([1]);
    await new Promise((resolve) => setTimeout(resolve, 20));
    const behind = commits.add([2]);
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
    await expect(commits.add([1])).rejects.toThrow(Unavailable);
    for (clock.ms = untilMs - 1; clock.ms <= untilMs; clock.ms++)
      await expect(commits.add([2])).rejects.toThrow(Unavailable);
    await commits.add([2]);
    expect(tries).toEqual([1, 1, 1, 2]);
  });

  it("lets go at once of a batch that is wrong in itself", async () => {
    const tries: number[] = [];
    const commits = new GroupCommit<number>({
      ...options,
      commit: async ([item = 0]) => {
        tries.push(item);
        if (item === 1) throw new Error("wrong");
      },
    });
    await expect(commits.add([1])).rejects.toThrow("wrong");
    await commits.add([2]);
    expect(tries).toEqual([1, 2]);
  });

  it("commits nothing where nothing is new", async () => {
    const tries: number[] = [];
    const commits = new GroupCommit<number>({
      ...options,
      select: async () => [],
      commit: async (items) => void tries.push(...items),
    });
    await commits.add([1]);
    expect(tries).toEqual([]);
  });

  it("refuses what is too much, and goes on with the rest", async () => {
    const held = Promise.withResolvers<void>();
    const commits = new GroupCommit<number>({ ...options, commit: () => held.promise });
    const first = commits.add(Array.from({ length: 100 }, () => 1));
    await expect(commits.add(Array.from({ length: 100 }, () => 1))).rejects.toThrow(Unavailable);
    held.resolve();
    await first;
    await commits.add([1]);
  });
});

describe("shared calls", () => {
  const options = { part: "store", gatherMs: 5, maxWeight: 10, patienceMs: 1_000 };

  it("are one for what comes within a moment, and each caller gets its outcome", async () => {
    const calls: number[][] = [];
    const isBad = (items: readonly number[]) => items.includes(3);
    const shared = new SharedCalls<number>({
      ...options,
      call: async (items) => {
        calls.push([...items]);
        if (isBad(items)) throw away();
      },
    });
    await Promise.all([shared.add(1, 1), shared.add(2, 1)]);
    const outcomes = await Promise.allSettled([shared.add(3, 1), shared.add(4, 1)]);
    expect(outcomes.map(({ status }) => status)).toEqual(["rejected", "rejected"]);
    await shared.add(5, 1);
    expect(calls).toEqual([[1, 2], [3, 4], [5]]);
  });

  it("take no more together than is allowed, and what is too heavy by itself", async () => {
    const calls: number[][] = [];
    const shared = new SharedCalls<number>({ ...options, call: async (items) => void calls.push([...items]) });
    await Promise.all([shared.add(1, 6), shared.add(2, 4), shared.add(3, 1), shared.add(4, 50), shared.add(5, 1)]);
    expect(calls).toEqual([[1, 2], [3], [4], [5]]);
  });

  it("keep nobody waiting for ever", async () => {
    const never = Promise.withResolvers<void>();
    const shared = new SharedCalls<number>({ ...options, patienceMs: 20, call: () => never.promise });
    await expect(shared.add(1, 1)).rejects.toThrow(Unavailable);
    never.resolve();
  });
});

describe("novelty", () => {
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
        const novelty = new Novelty(store);
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
