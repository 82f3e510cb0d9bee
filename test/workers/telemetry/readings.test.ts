import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { Unavailable } from "../../../src/lib/errors.ts";
import { createReadings } from "../../../src/telemetry/readings.ts";
import { Deduplicator } from "../../../src/telemetry/shard/deduplicator.ts";
import { Flusher } from "../../../src/telemetry/shard/flusher.ts";
import type { Journal } from "../../../src/telemetry/shard/journal.ts";
import type { AgentSample } from "../../../src/telemetry/store/telemetry-store.ts";
import { testStore, uniqueName } from "../support.ts";
import { append, FLUSHER_DEFAULTS, outage, withJournal } from "./journal-support.ts";

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;

/** The journal of an agent in front of the real telemetry store. Nothing is written before `drain`. */
function openReadings(journal: Journal) {
  const store = testStore();
  let isDown = false;
  let isTruncated = false;
  const guarded: typeof store = {
    ...store,
    series: async (...args) => (isDown ? Promise.reject(outage()) : await store.series(...args)),
    strings: async (...args) => (isDown ? Promise.reject(outage()) : await store.strings(...args)),
    availableLastSeen: async (...args) => (isDown ? Promise.reject(outage()) : await store.availableLastSeen(...args)),
    metrics: async (...args) => (isDown ? Promise.reject(outage()) : await store.metrics(...args)),
  };
  const flusher = new Flusher({
    journal,
    deduplicator: new Deduplicator({ store, isPending: (apId) => journal.has(apId) }),
    insert: (samples, token) => store.insert(samples, token),
    ...FLUSHER_DEFAULTS,
    maxSamples: 5_000,
    maxLength: 1_000_000,
  });
  const readings = createReadings(guarded, {
    pending: async (apId, fromMs, toMs) => ({
      samples: journal.samplesOf(apId).filter(({ tsMs }) => tsMs >= fromMs && tsMs <= toMs),
      isStoreDown: isDown,
      isTruncated,
    }),
    received: async () => ({ times: new Map(), isComplete: true }),
  });
  return {
    readings,
    drain: () => flusher.drain(),
    fail: () => {
      isDown = true;
    },
    truncate: () => {
      isTruncated = true;
    },
  };
}

const rowsOf = async (
  readings: ReturnType<typeof openReadings>["readings"],
  apId: string,
  toMs: number,
  limit: number,
) => {
  const rows: [string, number, unknown][] = [];
  for (const of of ["numbers", "texts"] as const) {
    for (let after: { field: string; tsMs: number } | undefined; ; ) {
      const page = await readings.history({ apId, fromMs: 0, toMs, of, after, limit });
      for (const text of page) {
        const { time, field, value } = JSON.parse(text) as { time: string; field: string; value: unknown };
        after = { field, tsMs: Date.parse(time) };
        rows.push([field, after.tsMs, value]);
      }
      if (page.length === 0) break;
    }
  }
  return rows;
};

describe("readings", () => {
  const sampleStep = fc.record({
    minute: fc.integer({ min: 0, max: 3 }),
    second: fc.integer({ min: 0, max: 4 }),
    metrics: fc.dictionary(fc.constantFrom("a", "b", "\u{1f600}", "\uffee"), fc.integer({ min: -9, max: 9 })),
    texts: fc.dictionary(fc.constantFrom("t", "u"), fc.constantFrom("x", "y")),
  });
  const step = fc.oneof(
    { weight: 4, arbitrary: fc.array(sampleStep, { minLength: 1, maxLength: 6 }) },
    fc.constant("flush"),
  );

  it("are the same wherever a sample is: in the journal, in the store or in both", async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(step, { minLength: 1, maxLength: 6 }), (steps) =>
        withJournal(async ({ open }) => {
          const journal = open({ maxLength: 1_000_000 });
          const { readings, drain } = openReadings(journal);
          const apId = uniqueName();
          const nowMs = Math.floor(Date.now() / MINUTE_MS) * MINUTE_MS;
          const numbers = new Map<string, [string, number, number]>();
          const texts = new Map<string, [string, number, string]>();
          for (const step of steps) {
            if (typeof step === "string") {
              await drain();
              continue;
            }
            const samples = step.map(({ minute, second, metrics, texts }): AgentSample => {
              return { apId, tsMs: nowMs - minute * MINUTE_MS - second * 1_000, metrics, texts, receivedMs: nowMs };
            });
            append(journal, ...samples);
            for (const sample of samples) {
              for (const [field, value] of Object.entries(sample.metrics)) {
                const key = `${field} ${sample.tsMs}`;
                if (!numbers.has(key)) numbers.set(key, [field, sample.tsMs, value]);
              }
              for (const [field, value] of Object.entries(sample.texts))
                texts.set(`${field} ${sample.tsMs}`, [field, sample.tsMs, value]);
            }
          }
          const range = { apId, fromMs: nowMs - 10 * MINUTE_MS, toMs: nowMs + 1_000 };
          const { series } = await readings.series(range);
          expect(
            series.flatMap(({ metric, points }) => points.map((p) => [metric, p.tsMs, p.value])).toSorted(),
          ).toEqual([...numbers.values()].toSorted());
          const days = await readings.series({ ...range, fromMs: nowMs - 48 * HOUR_MS });
          expect(
            days.series.flatMap(({ metric, points }) => points.map((p) => [metric, p.tsMs, p.value])).toSorted(),
          ).toEqual([...numbers.values()].toSorted());
          const strings = await readings.strings(range);
          expect(
            strings.series.flatMap(({ metric, points }) => points.map((p) => [metric, p.tsMs, p.value])).toSorted(),
          ).toEqual([...texts.values()].toSorted());
          const rows = await rowsOf(readings, apId, nowMs + 1_000, 3);
          expect(rows.toSorted()).toEqual([...numbers.values(), ...texts.values()].toSorted());
          expect(await readings.metrics(apId, range.fromMs)).toEqual(
            [...new Set([...numbers.values()].map(([field]) => field))].toSorted(),
          );
        }),
      ),
      { numRuns: 12 },
    );
  }, 120_000);

  it("do not have points outside the period, although they are in its first or last minute", async () => {
    await withJournal(async ({ open }) => {
      const journal = open();
      const { readings, drain } = openReadings(journal);
      const [apId, minuteMs] = [uniqueName(), Math.floor(Date.now() / MINUTE_MS) * MINUTE_MS];
      const [fromMs, toMs] = [minuteMs - 10 * MINUTE_MS + 30_000, minuteMs - MINUTE_MS + 30_000];
      const times = [fromMs - 1, fromMs, toMs, toMs + 1];
      append(journal, ...times.map((tsMs) => ({ apId, tsMs, metrics: { m: 1 }, texts: {} })));
      const expected = [{ metric: "m", points: [fromMs, toMs].map((tsMs) => ({ tsMs, value: 1 })) }];
      expect((await readings.series({ apId, fromMs, toMs })).series).toEqual(expected);
      await drain();
      expect((await readings.series({ apId, fromMs, toMs })).series).toEqual(expected);
    });
  });

  it.each([
    { what: "seconds", windowMs: 8 * HOUR_MS, stepMs: 12_000 },
    { what: "minutes", windowMs: 48 * HOUR_MS, stepMs: 61_000 },
  ])("average long periods over buckets of $what, each point once", async ({ windowMs, stepMs }) => {
    await withJournal(async ({ open }) => {
      const journal = open({ maxLength: 10_000_000, maxRowLength: 300_000 });
      const { readings, drain } = openReadings(journal);
      const apId = uniqueName();
      const toMs = Date.now();
      const fromMs = toMs - windowMs;
      const samples = Array.from({ length: Math.floor(windowMs / stepMs) }, (_, i): AgentSample => {
        return { apId, tsMs: toMs - i * stepMs, metrics: { many: i }, texts: {} };
      });
      append(journal, ...samples.slice(5));
      await drain();
      // New ones, and repeated ones that are in the journal and in the store.
      append(journal, ...samples.slice(0, 40));
      const [{ bucketMs = 0, points = [] } = {}] = (await readings.series({ apId, metrics: ["many"], fromMs, toMs }))
        .series;
      expect(bucketMs).toBeGreaterThan(0);
      const byMinute = bucketMs >= MINUTE_MS;
      const expected = Map.groupBy(samples, ({ tsMs }) => {
        const unitMs = byMinute ? Math.floor(tsMs / MINUTE_MS) * MINUTE_MS : tsMs;
        return fromMs + Math.max(0, Math.floor((unitMs - fromMs) / bucketMs)) * bucketMs;
      });
      const means = [...expected].map(([tsMs, inBucket]) => ({
        tsMs,
        value: inBucket.reduce((sum, { metrics }) => sum + (metrics.many ?? 0), 0) / inBucket.length,
      }));
      const round = ({ tsMs, value }: { tsMs: number; value: number }) => `${tsMs} ${value.toFixed(6)}`;
      expect(points.map(round)).toEqual(means.toSorted((a, b) => a.tsMs - b.tsMs).map(round));
    });
  });

  it("have the samples of the journal while the store does not respond, and say which are missing", async () => {
    await withJournal(async ({ open }) => {
      const journal = open();
      const { readings, drain, fail } = openReadings(journal);
      const [apId, nowMs] = [uniqueName(), Date.now()];
      append(journal, { apId, tsMs: nowMs - 2_000, metrics: { m: 1 }, texts: {} });
      await drain();
      append(journal, { apId, tsMs: nowMs - 1_000, metrics: { m: 2 }, texts: { t: "x" } });
      fail();
      const range = { apId, fromMs: nowMs - MINUTE_MS, toMs: nowMs };
      expect(await readings.series(range)).toEqual({
        series: [{ metric: "m", points: [{ tsMs: nowMs - 1_000, value: 2 }] }],
        completeFromMs: nowMs - 1_000,
      });
      expect((await readings.strings(range)).series).toEqual([
        { metric: "t", points: [{ tsMs: nowMs - 1_000, value: "x" }] },
      ]);
      expect(await readings.metrics(apId, nowMs - MINUTE_MS)).toEqual(["m"]);
    });
  });

  it("have no gap if the journal has too many samples: charts say which are missing, and a history fails", async () => {
    await withJournal(async ({ open }) => {
      const journal = open();
      const { readings, drain, truncate } = openReadings(journal);
      const [apId, nowMs] = [uniqueName(), Date.now()];
      append(journal, { apId, tsMs: nowMs - 3_000, metrics: { m: 1 }, texts: {} });
      await drain();
      append(journal, { apId, tsMs: nowMs - 1_000, metrics: { m: 3 }, texts: {} });
      truncate();
      const range = { apId, fromMs: nowMs - MINUTE_MS, toMs: nowMs };
      expect(await readings.series(range)).toEqual({
        series: [{ metric: "m", points: [{ tsMs: nowMs - 1_000, value: 3 }] }],
        completeFromMs: nowMs - 1_000,
      });
      await expect(readings.history({ ...range, of: "numbers", limit: 10 })).rejects.toThrow(Unavailable);
      await expect(readings.countHistory(range)).rejects.toThrow(Unavailable);
    });
  });
});
