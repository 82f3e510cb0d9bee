import { setTimeout as sleep } from "node:timers/promises";
import { describe, expect, it } from "vitest";
import { limitCalls } from "../../src/lib/limit-calls.ts";

describe("limited calls", () => {
  it("run at most so many at a time, in order, also after a failure", async () => {
    let [running, most] = [0, 0];
    const started: number[] = [];
    const call = limitCalls(3, async (number: number) => {
      started.push(number);
      most = Math.max(most, ++running);
      await sleep(1 + (number % 3));
      running--;
      if (number % 4 === 0) throw new Error("failed");
      return number;
    });
    const numbers = Array.from({ length: 20 }, (_, i) => i);
    const outcomes = await Promise.allSettled(numbers.map((number) => call(number)));
    expect(most).toBe(3);
    expect(started).toEqual(numbers);
    expect(outcomes.filter(({ status }) => status === "rejected").length).toBe(5);
    expect(await call(1)).toBe(1);
  });
});
