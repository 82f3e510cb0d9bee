import { env } from "cloudflare:test";
import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { parseEnv } from "../../../src/env.ts";
import { toIsoTime } from "../../../src/lib/iso-time.ts";
import { createReadings } from "../../../src/telemetry/readings.ts";
import { LiveWindow } from "../../../src/telemetry/shard/live-window.ts";
import { MetricSeries } from "../../../src/telemetry/shard/metric-series.ts";
import { createPlacement } from "../../../src/telemetry/shard/placement.ts";
import { createShardClient } from "../../../src/telemetry/shard/shard-client.ts";
import { newAgent, send, testStore } from "../support.ts";

const NOW = 1_000_000;
const sample = (tsMs: number, metrics: Record<string, number>) => ({ tsMs, metrics, texts: {} });
const EMPTY_SERIES_BYTES = new MetricSeries().bytes;
const windowOf = (spanMs = 1_000, maxBytes = 16_000) => {
  const clock = { ms: NOW };
  return { clock, window: new LiveWindow({ spanMs, maxBytes, now: () => clock.ms }) };
};
const read = (
  window: LiveWindow,
  apId = "a",
  fromMs = 0,
  toMs = NOW * 10,
  maxPoints = 1_000,
): [number, number][] | undefined => {
  const [text] = window.read(apId, ["m"], { fromMs, toMs }, maxPoints) ?? [];
  if (text === undefined) return undefined;
  return (JSON.parse(text) as { ts: string; value: number }[]).map(({ ts, value }) => [Date.parse(ts), value]);
};

describe("the live window", () => {
  it("keeps nothing of an agent that is not watched", () => {
    const { window } = windowOf();
    window.add("a", sample(NOW, { m: 1 }));
    expect(read(window)).toBeUndefined();
    expect(window.bytes).toBe(0);
  });

  it("merges points from the store with points added meanwhile: of two with the same time, the store's stays", () => {
    const { window } = windowOf();
    window.watch("a");
    window.add("a", sample(NOW - 1, { m: 2 }));
    window.fill("a", [
      { metric: "m", tsMs: NOW - 2, value: 1 },
      { metric: "m", tsMs: NOW - 1, value: 0 },
    ]);
    expect(read(window)).toEqual([
      [NOW - 2, 1],
      [NOW - 1, 0],
    ]);
  });

  it("drops points older than its span", () => {
    const { window, clock } = windowOf(1_000);
    window.watch("a");
    for (let i = 0; i < 500; i++) {
      clock.ms += 10;
      window.add("a", sample(clock.ms, { m: i }));
    }
    expect(window.bytes).toBeLessThan(EMPTY_SERIES_BYTES + 256 * 16);
    expect(read(window)).toHaveLength(101);
    expect(read(window)?.[0]).toEqual([clock.ms - 1_000, 399]);
  });

  it("drops the least recently read agent beyond the memory limit", () => {
    const { window } = windowOf(1_000, 2 * (EMPTY_SERIES_BYTES + 256) + 50);
    for (const apId of ["a", "b"]) {
      window.watch(apId);
      for (let i = 0; i < 8; i++) window.add(apId, sample(NOW - i, { m: i }));
    }
    read(window, "a", NOW + 1);
    window.watch("c");
    for (let i = 0; i < 8; i++) window.add("c", sample(NOW - i, { m: i }));
    expect([window.has("a"), window.has("b"), window.has("c")]).toEqual([true, false, true]);
    expect(window.bytes).toBe(2 * EMPTY_SERIES_BYTES);
    // The cached JSON counts as well.
    read(window, "c", NOW - 1);
    expect([window.has("a"), window.has("c")]).toEqual([false, true]);
    expect(window.bytes).toBeGreaterThan(EMPTY_SERIES_BYTES);
  });

  it("counts the memory of series with few points and drops empty ones", () => {
    const { window, clock } = windowOf(1_000, 100 * EMPTY_SERIES_BYTES);
    window.watch("a");
    for (let i = 0; i < 80; i++) window.add("a", sample(NOW, { [`client-${i}`]: i }));
    expect(window.bytes).toBe(80 * EMPTY_SERIES_BYTES);
    clock.ms += 2_000;
    window.add("a", sample(clock.ms, { m: 1 }));
    expect(read(window)).toEqual([[clock.ms, 1]]);
    expect(window.bytes).toBeLessThan(2 * EMPTY_SERIES_BYTES);
    for (let i = 0; i < 101; i++) window.add("a", sample(clock.ms, { [`client-${i}`]: i }));
    expect(window.has("a")).toBe(false);
  });

  it("limits the number of agents, even if they send nothing", () => {
    const { window } = windowOf(1_000, 1_024);
    const names = Array.from({ length: 10 }, (_, i) => `agent-${i}`);
    for (const apId of names) window.watch(apId);
    expect(names.filter((apId) => window.has(apId))).toEqual(names.slice(-4));
  });

  it("returns undefined if a metric has more points than the limit", () => {
    const { window } = windowOf();
    window.watch("a");
    for (let i = 0; i < 10; i++) window.add("a", sample(NOW - i, { m: i }));
    expect(read(window, "a", 0, NOW, 9)).toBeUndefined();
    expect(read(window, "a", 0, NOW, 10)).toHaveLength(10);
  });

  it("returns the added points sorted, without duplicates and old ones, for any mix of adds, reads and time", async () => {
    const step = fc.oneof(
      {
        weight: 6,
        arbitrary: fc.record({
          kind: fc.constant("next" as const),
          value: fc.double({ noNaN: true, noDefaultInfinity: true }),
        }),
      },
      {
        weight: 2,
        arbitrary: fc.record({ kind: fc.constant("late" as const), agoMs: fc.nat(1_200), value: fc.integer() }),
      },
      {
        weight: 2,
        arbitrary: fc.record({ kind: fc.constant("read" as const), agoMs: fc.nat(900), skipMs: fc.nat(50) }),
      },
      { weight: 1, arbitrary: fc.record({ kind: fc.constant("wait" as const), ms: fc.nat(300) }) },
    );
    await fc.assert(
      fc.property(fc.array(step, { maxLength: 400, size: "max" }), (steps) => {
        const { window, clock } = windowOf(1_000, 100_000);
        window.watch("a");
        const model = new Map<number, number>();
        const add = (tsMs: number, value: number) => {
          window.add("a", sample(tsMs, { m: value }));
          if (tsMs >= clock.ms - 1_000 && !model.has(tsMs)) model.set(tsMs, value);
        };
        for (const step of steps) {
          if (step.kind === "next") {
            clock.ms += 3;
            // JSON has no negative zero.
            add(clock.ms, step.value + 0);
          } else if (step.kind === "late") add(clock.ms - step.agoMs, step.value);
          else if (step.kind === "wait") clock.ms += step.ms;
          else {
            const [fromMs, toMs] = [clock.ms - step.agoMs, clock.ms - step.skipMs];
            const expected = [...model]
              .filter(([tsMs]) => tsMs >= fromMs && tsMs <= toMs)
              .toSorted(([a], [b]) => a - b);
            expect(read(window, "a", fromMs, toMs)).toEqual(expected);
          }
        }
      }),
    );
  });
});

describe("toIsoTime", () => {
  it("formats times like Date", async () => {
    const ms = fc.integer({ min: Date.UTC(1900, 0, 1), max: Date.UTC(2299, 11, 31) });
    await fc.assert(
      fc.property(ms, (tsMs) => {
        expect(toIsoTime(tsMs)).toBe(new Date(tsMs).toISOString());
      }),
    );
  });
});

describe("the live window and the store", () => {
  it("return the same points, before and after the agent is watched", async () => {
    const readings = createReadings(testStore(), createShardClient(env.AGENT_SHARD, createPlacement(parseEnv(env))));
    const drawn = fc.record({
      ageMs: fc.integer({ min: 1, max: 250_000 }),
      a: fc.double({ noNaN: true, noDefaultInfinity: true }),
      b: fc.integer(),
    });
    await fc.assert(
      fc.asyncProperty(fc.array(drawn, { minLength: 1, maxLength: 20 }), async (points) => {
        const { apId, token } = await newAgent();
        const nowMs = Date.now();
        const fromService = async () => {
          const response = await send(
            "GET",
            `/api/v1/metrics/agent_multi_metric_data?agent=${apId}&metrics=a,b`,
            undefined,
            token,
          );
          const { series } = (await response.json()) as {
            series: { metric: string; points: { ts: string; value: number }[] }[];
          };
          return series.map(({ metric, points }) => ({
            metric,
            points: points.map(({ ts, value }) => [Date.parse(ts), value]),
          }));
        };
        for (const [i, { ageMs, a, b }] of points.entries()) {
          const report = { ts: nowMs - ageMs, payload: { a, b } };
          expect((await send("POST", "/api/v1/agent_update/update", report, token)).status).toBe(200);
          if (i % 5 !== 0) continue;
          const { series: stored } = await readings.series({
            apId,
            metrics: ["a", "b"],
            fromMs: Date.now() - 300_000,
            toMs: Date.now(),
          });
          // Through JSON, which has no negative zero.
          const plain = JSON.parse(
            JSON.stringify(
              stored.map(({ metric, points }) => ({
                metric,
                points: points.map(({ tsMs, value }) => [tsMs, value]),
              })),
            ),
          );
          expect(await fromService()).toEqual(plain);
        }
      }),
      { numRuns: 5 },
    );
  }, 60_000);
});
