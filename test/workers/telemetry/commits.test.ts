import { env } from "cloudflare:test";
import { describe, expect, it, vi } from "vitest";
import { Unavailable } from "../../../src/lib/errors.ts";
import type { AppendResult } from "../../../src/telemetry/shard/agent-shard.ts";
import { GroupCommit } from "../../../src/telemetry/shard/group-commit.ts";
import { createShardClient } from "../../../src/telemetry/shard/shard-client.ts";
import type { AgentSample } from "../../../src/telemetry/store/telemetry-store.ts";
import { testStore, uniqueName } from "../support.ts";

const outage = () => new Unavailable("store", new Error("outage"));

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

  it("commits the items of many callers in few batches and resolves each caller after its own", async () => {
    const batches: number[][] = [];
    const commits = new GroupCommit<number>({ ...options, commit: async (items) => void batches.push([...items]) });
    await Promise.all(Array.from({ length: 60 }, (_, i) => commits.add([i], 1)));
    expect(batches.flat().toSorted((a, b) => a - b)).toEqual(Array.from({ length: 60 }, (_, i) => i));
    expect(batches.length).toBeLessThan(5);
  });

  it("retries a batch with an unknown outcome under its own token before any other batch", async () => {
    const tries: [number, string][] = [];
    let isOutage = true;
    const commits = new GroupCommit<number>({
      ...options,
      commit: async ([item = 0], token) => {
        tries.push([item, token]);
        if (isOutage) throw outage();
      },
    });
    await expect(commits.add([1], 1)).rejects.toThrow(Unavailable);
    await expect(commits.add([2], 1)).rejects.toThrow(Unavailable);
    isOutage = false;
    await commits.add([3], 1);
    await commits.add([4], 1);
    expect(tries.map(([item]) => item)).toEqual([1, 1, 1, 3, 4]);
    expect(new Set(tries.slice(0, 3).map(([, token]) => token)).size).toBe(1);
    expect(new Set(tries.map(([, token]) => token)).size).toBe(3);
  });

  it("rejects the waiting callers at once when a commit fails because of an outage", async () => {
    const inProgress = Promise.withResolvers<void>();
    const committed: number[] = [];
    const commits = new GroupCommit<number>({
      ...options,
      commit: async (items) => {
        if (items.includes(1)) await inProgress.promise;
        committed.push(...items);
      },
    });
    const first = commits.add([1], 1);
    await scheduler.wait(20);
    const behind = commits.add([2], 1);
    inProgress.reject(outage());
    await expect(first).rejects.toThrow(Unavailable);
    await expect(behind).rejects.toThrow(Unavailable);
    expect(committed).toEqual([]);
  });

  it.each([
    { what: "that the store refuses", isRefused: true, untilMs: 60_000 },
    { what: "with an unknown outcome during an outage", isRefused: false, untilMs: 900_000 },
  ])("gives up a batch $what after $untilMs ms and not before", async ({ isRefused, untilMs }) => {
    const clock = { ms: 0 };
    const tries: number[] = [];
    const commits = new GroupCommit<number>({
      ...options,
      isRefused: () => isRefused,
      now: () => clock.ms,
      commit: async ([item = 0]) => {
        tries.push(item);
        if (item < 2) throw outage();
      },
    });
    await expect(commits.add([1], 1)).rejects.toThrow(Unavailable);
    for (clock.ms = untilMs - 1; clock.ms <= untilMs; clock.ms++)
      await expect(commits.add([2], 1)).rejects.toThrow(Unavailable);
    await commits.add([2], 1);
    expect(tries).toEqual([1, 1, 1, 2]);
  });

  it("commits all items except the invalid ones, each half under its own token", async () => {
    const tokens: string[] = [];
    const committed: number[] = [];
    const commits = new GroupCommit<number>({
      ...options,
      commit: async (items, token) => {
        tokens.push(token);
        if (items.some((item) => item % 40 === 7)) throw new Error("invalid");
        committed.push(...items);
      },
    });
    const rejected = await Promise.all(
      Array.from({ length: 25 }, (_, i) => commits.add([4 * i, 4 * i + 1, 4 * i + 2, 4 * i + 3], 4)),
    );
    const invalid = [7, 47, 87];
    expect(rejected.flat().map(({ item, error }) => [item, String(error)])).toEqual(
      invalid.map((item) => [item, "Error: invalid"]),
    );
    // Only the callers of the invalid items get them as rejected.
    expect(rejected.flatMap((items, i) => (items.length > 0 ? [i] : []))).toEqual(
      invalid.map((item) => Math.floor(item / 4)),
    );
    expect(committed.toSorted((a, b) => a - b)).toEqual(
      Array.from({ length: 100 }, (_, i) => i).filter((i) => !invalid.includes(i)),
    );
    expect(new Set(tokens).size).toBe(tokens.length);
    expect(tokens.length).toBeLessThan(50);
  });

  it("retries a half with an unknown outcome of a rejected batch under that half's token", async () => {
    const tries: [readonly number[], string][] = [];
    let isOutage = true;
    const commits = new GroupCommit<number>({
      ...options,
      commit: async (items, token) => {
        tries.push([items, token]);
        if (items.includes(2)) throw new Error("invalid");
        if (isOutage) throw outage();
      },
    });
    await expect(commits.add([1, 2], 2)).rejects.toThrow(Unavailable);
    isOutage = false;
    expect(await commits.add([1, 2], 2)).toMatchObject([{ item: 2 }]);
    expect(tries.map(([items]) => items)).toEqual([[1, 2], [1], [1], [1, 2], [1], [2]]);
    expect(tries[1]?.[1]).toBe(tries[2]?.[1]);
    expect(new Set(tries.map(([, token]) => token)).size).toBe(5);
  });

  it("stops searching for invalid items after 100 commits and continues with the next batch", async () => {
    let tries = 0;
    const commits = new GroupCommit<number>({
      ...options,
      commit: async (items) => {
        tries++;
        if (items.includes(1)) throw new Error("invalid");
      },
    });
    const many = Array.from({ length: 100 }, () => 1);
    expect(await commits.add(many, 100)).toHaveLength(100);
    expect(tries).toBeLessThanOrEqual(110);
    expect(await commits.add([2], 1)).toEqual([]);
  });

  it("does not fail callers when an earlier batch with an unknown outcome turns out to be invalid", async () => {
    const errors = [outage(), new Error("invalid")];
    const committed: number[] = [];
    const commits = new GroupCommit<number>({
      ...options,
      commit: async (items) => {
        const error = errors.shift();
        if (error !== undefined) throw error;
        committed.push(...items);
      },
    });
    await expect(commits.add([1], 1)).rejects.toThrow(Unavailable);
    expect(await commits.add([2], 1)).toEqual([]);
    expect(committed).toEqual([2]);
  });

  it("commits each lane separately, and current items after one backlog batch at most", async () => {
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
    const current = commits.add([1], 1).then(() => batches.length);
    const other = commits.add([201, 2], 2);
    first.resolve();
    expect(await current).toBeLessThanOrEqual(2);
    await Promise.all([backlog, other]);
    expect(batches).toEqual([[100, 101], [1, 2], [200, 201], [300], [400]]);
  });

  it("gathers for each batch, also after another commit", async () => {
    const batches: number[][] = [];
    const first = Promise.withResolvers<void>();
    const commits = new GroupCommit<number>({
      ...options,
      gatherMs: 500,
      commit: async (items) => {
        batches.push([...items]);
        if (batches.length === 1) await first.promise;
      },
    });
    const all = [commits.add([1], 1)];
    await vi.waitFor(() => expect(batches).toHaveLength(1));
    all.push(commits.add([2], 1));
    first.resolve();
    await all[0];
    await scheduler.wait(10);
    all.push(commits.add([3], 1));
    await Promise.all(all);
    expect(batches).toEqual([[1], [2, 3]]);
  });

  it("commits a full batch without waiting for the gathering delay", async () => {
    const commits = new GroupCommit<number>({ ...options, gatherMs: 2_000, commit: async () => {} });
    const startMs = Date.now();
    const full = commits.add(
      Array.from({ length: 100 }, () => 1),
      1,
    );
    const next = commits.add([2], 1);
    await full;
    expect(Date.now() - startMs).toBeLessThan(1_500);
    await next;
  });

  it("limits the length of a batch and of all waiting items", async () => {
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
    // An item over the limit is committed alone.
    await commits.add([5], 1_500);
    expect(batches).toEqual([[1], [2, 3], [5]]);
  });

  it("commits nothing if all items are already committed", async () => {
    const tries: number[] = [];
    const commits = new GroupCommit<number>({
      ...options,
      select: async () => [],
      commit: async (items) => void tries.push(...items),
    });
    await commits.add([1], 1);
    expect(tries).toEqual([]);
  });

  it("refuses items over the limit and continues with the others", async () => {
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

  it("commits current samples while a backlog of two years waits", async () => {
    const [late, current, nowMs] = [uniqueName(), uniqueName(), Date.now()];
    const one = shard();
    const ended: [string, AppendResult][] = [];
    const backlog = Array.from({ length: 100 }, (_, week) => sample(late, nowMs - week * 7 * 86_400_000));
    await Promise.all([
      one.append(textOf(backlog)).then((outcome) => ended.push(["backlog", outcome])),
      one.append(textOf([sample(current, nowMs)])).then((outcome) => ended.push(["current", outcome])),
    ]);
    expect(ended).toEqual([
      ["current", "committed"],
      ["backlog", "committed"],
    ]);
  });
});

describe("the shard client", () => {
  it("refuses samples when more than 32 MiB are in flight in one Worker and continues afterwards", async () => {
    const held = Promise.withResolvers<AppendResult>();
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
