import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { toIsoTime } from "../../src/telemetry/iso-time.ts";
import { LiveWindow } from "../../src/telemetry/live-window.ts";
import { newAgent, send, testStore } from "./support.ts";

const NOW = 1_000_000;
const sample = (tsMs: number, metrics: Record<string, number>) => ({ tsMs, metrics, texts: {} });
const windowOf = (spanMs = 1_000, maxPoints = 1_000) => {
  const clock = { ms: NOW };
  return { clock, window: new LiveWindow({ spanMs, maxPoints, now: () => clock.ms }) };
};
const read = (window: LiveWindow, apId = "a", from = 0, to = Number.MAX_SAFE_INTEGER) =>
  window.read(apId, ["m"], from, to)?.map(({ tsMs, values }) => [...tsMs].map((ts, i) => [ts, values[i]]))[0];

describe("the live window", () => {
  it("knows nothing of an agent that nobody watches", () => {
    const { window } = windowOf();
    window.add("a", sample(NOW, { m: 1 }));
    expect(read(window)).toBeUndefined();
    expect(window.points).toBe(0);
  });

  it("puts what the store had before what came meanwhile, once", () => {
    const { window } = windowOf();
    window.watch("a");
    window.add("a", sample(NOW - 1, { m: 2 }));
    window.fill("a", [
      { metric: "m", tsMs: NOW - 2, value: 1 },
      { metric: "m", tsMs: NOW - 1, value: 0 },
    ]);
    expect(read(window)).toEqual([
      [NOW - 2, 1],
      [NOW - 1, 2],
    ]);
  });

  it("lets go of what is older than its span", () => {
    const { window, clock } = windowOf(1_000);
    window.watch("a");
    for (let i = 0; i < 500; i++) {
      clock.ms += 10;
      window.add("a", sample(clock.ms, { m: i }));
    }
    expect(read(window)?.[0]).toEqual([clock.ms - 1_000, 399]);
    expect(window.points).toBe(101);
  });

  it("lets go of whoever was not asked for the longest time when there is too much", () => {
    const { window } = windowOf(1_000, 10);
    for (const apId of ["a", "b"]) {
      window.watch(apId);
      for (let i = 0; i < 4; i++) window.add(apId, sample(NOW - i, { m: i }));
    }
    read(window, "a");
    window.watch("c");
    for (let i = 0; i < 4; i++) window.add("c", sample(NOW - i, { m: i }));
    expect([window.has("a"), window.has("b"), window.has("c"), window.points]).toEqual([true, false, true, 8]);
  });

  it("is sorted and without doubles, whatever the order in which points come", async () => {
    const point = fc.record({ tsMs: fc.integer({ min: NOW - 1_200, max: NOW }), value: fc.integer() });
    await fc.assert(
      fc.property(fc.array(point, { maxLength: 300 }), fc.integer({ min: NOW - 900, max: NOW }), (points, from) => {
        const { window } = windowOf(1_000);
        window.watch("a");
        const expected = new Map<number, number>();
        for (const { tsMs, value } of points) {
          window.add("a", sample(tsMs, { m: value }));
          if (tsMs >= NOW - 1_000 && !expected.has(tsMs)) expected.set(tsMs, value);
        }
        const sorted = [...expected].filter(([tsMs]) => tsMs >= from && tsMs <= NOW - 5).toSorted(([a], [b]) => a - b);
        expect(read(window, "a", from, NOW - 5) ?? []).toEqual(sorted);
        expect(window.points).toBe(expected.size);
      }),
    );
  });
});

describe("times", () => {
  it("are written as Date writes them", async () => {
    const ms = fc.integer({ min: Date.UTC(1900, 0, 1), max: Date.UTC(2299, 11, 31) });
    await fc.assert(
      fc.property(ms, (tsMs) => {
        expect(toIsoTime(tsMs)).toBe(new Date(tsMs).toISOString());
      }),
    );
  });
});

describe("memory and store", () => {
  it("give the same answer, before and after somebody watches", async () => {
    const store = testStore();
    const drawn = fc.record({
      ageMs: fc.integer({ min: 1, max: 250_000 }),
      a: fc.double({ noNaN: true, noDefaultInfinity: true }),
      b: fc.integer(),
    });
    await fc.assert(
      fc.asyncProperty(fc.array(drawn, { minLength: 1, maxLength: 20 }), async (points) => {
        const { apId, token } = await newAgent();
        const nowMs = Date.now();
        const remembered = async () => {
          const response = await send(
            "GET",
            `/api/v1/metrics/agent_multi_metric_data?agent=${apId}&metrics=a,b`,
            undefined,
            token,
          );
          const { series } = (await response.json()) as {
            series: { metric: string; points: { ts: string; value: number }[] }[];
          };
          return series.map(({ metric, points: its }) => ({
            metric,
            points: its.map(({ ts, value }) => [Date.parse(ts), value]),
          }));
        };
        for (const [i, { ageMs, a, b }] of points.entries()) {
          const report = { ts: nowMs - ageMs, payload: { a, b } };
          expect((await send("POST", "/api/v1/agent_update/update", report, token)).status).toBe(200);
          if (i % 5 !== 0) continue;
          const stored = await store.series({
            apId,
            metrics: ["a", "b"],
            fromMs: Date.now() - 300_000,
            toMs: Date.now(),
          });
          // Through JSON, which knows no negative zero.
          const plain = JSON.parse(
            JSON.stringify(
              stored.map(({ metric, points: its }) => ({
                metric,
                points: its.map(({ tsMs, value }) => [tsMs, value]),
              })),
            ),
          );
          expect(await remembered()).toEqual(plain);
        }
      }),
      { numRuns: 5 },
    );
  }, 60_000);
});
