import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { Deduplicator } from "../../../src/telemetry/shard/deduplicator.ts";
import type { AgentSample } from "../../../src/telemetry/store/telemetry-store.ts";
import { testStore, uniqueName } from "../support.ts";

describe("the deduplicator", () => {
  it("does not mistake an old sample whose commit was uncertain for the newest of its agent", async () => {
    const sample = (tsMs: number): AgentSample => ({ apId: "a", tsMs, metrics: { m: 1 }, texts: {} });
    const deduplicator = new Deduplicator({
      newestSamples: async () => new Map([["a", 100]]),
      stored: async (samples) => samples.map(({ apId, tsMs }) => ({ apId, tsMs, metric: "m" })),
    });
    await deduplicator.newSamples([sample(50)]);
    deduplicator.forget([sample(50)]);
    deduplicator.committed([sample(50)]);
    expect(await deduplicator.newSamples([sample(100)])).toEqual([{ ...sample(100), metrics: {} }]);
  });

  it("returns values whose agent, metric and time are not stored: in any order, repeated, and after forgetting", async () => {
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
        const deduplicator = new Deduplicator(store);
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
            deduplicator.forget(samples);
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
