import { describe, expect, it, vi } from "vitest";
import { Unavailable } from "../../../src/lib/errors.ts";
import { CallBatcher } from "../../../src/storage/call-batcher.ts";

describe("the call batcher", () => {
  const options = { component: "store", maxHoldMs: 5, maxWeight: 10, timeoutMs: 1_000 };

  it("combines items that arrive during a call into the next one, and gives each caller its result", async () => {
    const calls: number[][] = [];
    const batcher = new CallBatcher<number, number>({
      ...options,
      call: async (items) => {
        calls.push([...items]);
        if (items.includes(3)) throw new Unavailable("store", new Error("outage"));
        return items.map((item) => -item);
      },
    });
    expect(await Promise.all([0, 1, 2].map((item) => batcher.add(item, 1)))).toEqual([-0, -1, -2]);
    const outcomes = await Promise.allSettled([5, 3, 4].map((item) => batcher.add(item, 1)));
    expect(outcomes.map(({ status }) => status)).toEqual(["fulfilled", "rejected", "rejected"]);
    expect(batcher.isIdle).toBe(true);
    expect(calls).toEqual([[0], [1, 2], [5], [3, 4]]);
  });

  it("limits the weight of a call and sends a heavier item alone", async () => {
    const calls: number[][] = [];
    const batcher = new CallBatcher<number, number>({
      ...options,
      call: async (items) => {
        calls.push([...items]);
        return items;
      },
    });
    const weights = [1, 6, 4, 1, 50, 1];
    await Promise.all(weights.map((weight, item) => batcher.add(item, weight)));
    expect(calls).toEqual([[0], [1, 2], [3], [4], [5]]);
  });

  it("rejects a caller with Unavailable after the time-out", async () => {
    const never = Promise.withResolvers<number[]>();
    const batcher = new CallBatcher<number, number>({ ...options, timeoutMs: 20, call: () => never.promise });
    await expect(batcher.add(1, 1)).rejects.toThrow(Unavailable);
    never.resolve([]);
  });

  it("calls at once if no call is in flight, and otherwise gathers items until the call ends", async () => {
    const calls: number[][] = [];
    const first = Promise.withResolvers<void>();
    const batcher = new CallBatcher<number, number>({
      ...options,
      maxHoldMs: 5_000,
      timeoutMs: 10_000,
      call: async (items) => {
        calls.push([...items]);
        if (calls.length === 1) await first.promise;
        return items;
      },
    });
    const results = [batcher.add(1, 1)];
    await vi.waitFor(() => expect(calls).toHaveLength(1));
    results.push(batcher.add(2, 1));
    await scheduler.wait(20);
    results.push(batcher.add(3, 1));
    expect(calls).toEqual([[1]]);
    first.resolve();
    expect(await Promise.all(results)).toEqual([1, 2, 3]);
    expect(calls).toEqual([[1], [2, 3]]);
  });

  it("holds items for a limited time if a call in flight does not end", async () => {
    const first = Promise.withResolvers<void>();
    const batcher = new CallBatcher<number, number>({
      ...options,
      timeoutMs: 10_000,
      call: async (items) => {
        if (items.includes(1)) await first.promise;
        return items;
      },
    });
    const stuck = batcher.add(1, 1);
    await scheduler.wait(20);
    expect(await batcher.add(2, 1)).toBe(2);
    first.resolve();
    expect(await stuck).toBe(1);
  });
});
