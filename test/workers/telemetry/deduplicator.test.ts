import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { Deduplicator } from "../../../src/telemetry/shard/deduplicator.ts";
import type { AgentSample } from "../../../src/telemetry/store/telemetry-store.ts";
import { testStore, uniqueName } from "../support.ts";

describe("the deduplicator", () => {
  const sample = (tsMs: number): AgentSample => ({ apId: "a", tsMs, metrics: { m: 1 }, texts: {} });
  const fixed = (newestMs: number) =>
    new Deduplicator({
      store: {
        newestSamples: async () => new Map([["a", newestMs]]),
        stored: async (samples) => samples.map(({ apId, tsMs }) => ({ apId, tsMs, metric: "m" })),
      },
      isPending: () => false,
    });

  it("knows that a sample is new if it is newer than all stored and all accepted ones", async () => {
    const deduplicator = fixed(100);
    const accept = (...times: number[]) => times.map((tsMs) => deduplicator.accept(sample(tsMs)));
    // The store's newest sample is not known yet.
    expect(accept(90, 90, 80, 91)).toEqual([true, false, false, true]);
    await deduplicator.newSamples([sample(91)]);
    expect(accept(100, 101, 50, 101, 102)).toEqual([false, true, false, false, true]);
  });

  it("does not mistake an old sample for the newest of its agent", async () => {
    const deduplicator = fixed(100);
    deduplicator.committed([sample(50)]);
    await deduplicator.newSamples([sample(50)]);
    deduplicator.committed([sample(50)]);
    expect(await deduplicator.newSamples([sample(100)])).toEqual([{ ...sample(100), metrics: {} }]);
  });

  it("returns values whose agent, metric and time are not stored: in any order, repeated, and with another deduplicator", async () => {
    const store = testStore();
    const drawn = fc.record({
      agent: fc.integer({ min: 0, max: 1 }),
      second: fc.integer({ min: 0, max: 5 }),
      metrics: fc.dictionary(fc.constantFrom("a", "b"), fc.integer(), { minKeys: 1 }),
    });
    const step = fc.oneof(
      fc.array(drawn, { minLength: 1, maxLength: 5 }).map((samples) => ({ samples })),
      fc.constant("restart" as const),
    );
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 6 }), async (steps) => {
        const run = uniqueName();
        const startMs = Date.now() - 60_000;
        const start = () => new Deduplicator({ store, isPending: () => false });
        let deduplicator = start();
        const model = new Map<string, number>();
        for (const step of steps) {
          if (step === "restart") {
            deduplicator = start();
            continue;
          }
          const samples = step.samples.map(({ agent, second, metrics }) => ({
            apId: `${run}-${agent}`,
            tsMs: startMs + second * 1000,
            metrics,
            texts: {},
          }));
          const expected: [string, number][] = [];
          for (const { apId, tsMs, metrics } of samples) {
            for (const [metric, value] of Object.entries(metrics)) {
              const name = `${apId} ${tsMs} ${metric}`;
              if (model.has(name)) continue;
              model.set(name, value);
              expected.push([name, value]);
            }
          }
          const fresh = await deduplicator.newSamples(samples);
          const found = fresh.flatMap(({ apId, tsMs, metrics }) =>
            Object.entries(metrics).map(([metric, value]) => [`${apId} ${tsMs} ${metric}`, value]),
          );
          expect(found.toSorted()).toEqual(expected.toSorted());
          if (fresh.length > 0) await store.insert(fresh, crypto.randomUUID());
          deduplicator.committed(fresh);
        }
      }),
      { numRuns: 15 },
    );
  }, 60_000);
});
