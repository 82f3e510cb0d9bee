import { env, evictDurableObject, runDurableObjectAlarm } from "cloudflare:test";
import * as fc from "fast-check";
import { describe, expect, it, vi } from "vitest";
import { Unavailable } from "../../../src/lib/errors.ts";
import type { AppendResult } from "../../../src/telemetry/shard/agent-shard.ts";
import { parseSamples } from "../../../src/telemetry/shard/journal.ts";
import { createPlacement } from "../../../src/telemetry/shard/placement.ts";
import { createShardClient } from "../../../src/telemetry/shard/shard-client.ts";
import type { AgentSample } from "../../../src/telemetry/store/telemetry-store.ts";
import { testStore, uniqueName } from "../support.ts";
import {
  append,
  flusherOf,
  fullShard,
  outage,
  RecordedStore,
  sampleOf,
  textOf,
  withJournal,
} from "./journal-support.ts";

const WEEK_MS = 7 * 86_400_000;

const hasValues = (batch: readonly AgentSample[]) => batch.some(({ metrics }) => Object.keys(metrics).length > 0);
const rejectBad = (batch: readonly AgentSample[]) => {
  if (hasValues(batch.filter(({ apId }) => apId === "bad"))) throw new TypeError("invalid");
};

describe("the flusher", () => {
  it("writes many rows in one insert, and deletes them", () =>
    withJournal(async ({ open }) => {
      const [journal, store] = [open(), new RecordedStore()];
      for (let i = 0; i < 20; i++) append(journal, sampleOf("a", i));
      await flusherOf(journal, store).drain();
      expect(store.inserts.map(({ samples }) => samples.length)).toEqual([20]);
      expect([journal.isEmpty, open().isEmpty]).toEqual([true, true]);
    }));

  it("repeats exactly the same insert after a crash, even if it was stored and more samples have arrived", () =>
    withJournal(async ({ open }) => {
      const [journal, store] = [open(), new RecordedStore()];
      append(journal, sampleOf("a", 1), sampleOf("a", 2));
      store.after = () => {
        throw outage();
      };
      await expect(flusherOf(journal, store).drain()).rejects.toThrow(Unavailable);
      append(journal, sampleOf("a", 3));
      store.after = () => {};
      await flusherOf(open(), store).drain();
      const [first, repeated, next] = store.inserts;
      expect(repeated).toEqual(first);
      expect(next?.token).not.toBe(first?.token);
      expect(store.values).toEqual(["a 1 m 1", "a 2 m 1", "a 3 m 1"]);
    }));

  it("decides once which values are new, and keeps this decision across a crash", () =>
    withJournal(async ({ open }) => {
      const [journal, store] = [open(), new RecordedStore()];
      append(journal, sampleOf("a", 1, { m: 1 }));
      await flusherOf(journal, store).drain();
      // Repeated: once in the store, once in the same batch.
      append(journal, sampleOf("a", 1, { m: 2, n: 2 }), sampleOf("a", 2, { m: 3 }), sampleOf("a", 2, { m: 4 }));
      store.after = () => {
        throw outage();
      };
      await expect(flusherOf(journal, store).drain()).rejects.toThrow(Unavailable);
      store.after = () => {};
      // Now the store has all values. A new decision would find no new ones, and send another batch with the same token.
      await flusherOf(open(), store).drain();
      expect(store.inserts[2]).toEqual(store.inserts[1]);
      expect(store.values).toEqual(["a 1 m 1", "a 1 n 2", "a 2 m 3"]);
    }));

  it("loses and duplicates nothing, wherever it fails and crashes", () =>
    fc.assert(
      fc.asyncProperty(
        fc.array(
          fc.record({
            seconds: fc.array(fc.integer({ min: 0, max: 9 }), { minLength: 1, maxLength: 4 }),
            failure: fc.constantFrom("none", "before", "after"),
            isRestarted: fc.boolean(),
          }),
          { minLength: 1, maxLength: 8 },
        ),
        (steps) =>
          withJournal(async ({ open }) => {
            const store = new RecordedStore();
            const expected = new Map<string, number>();
            let journal = open();
            let flusher = flusherOf(journal, store, { maxSamples: 3 });
            let value = 0;
            for (const { seconds, failure, isRestarted } of steps) {
              const samples = seconds.map((tsMs) => sampleOf("a", tsMs, { m: ++value }));
              for (const { tsMs, metrics } of samples)
                expected.set(`a ${tsMs} m`, expected.get(`a ${tsMs} m`) ?? metrics.m ?? 0);
              append(journal, ...samples);
              let isFailing = failure !== "none";
              const fail = () => {
                if (isFailing) throw outage();
              };
              store.before = failure === "before" ? fail : () => {};
              store.after = failure === "after" ? fail : () => {};
              await flusher.drain().catch(() => {});
              isFailing = false;
              if (!isRestarted && !flusher.isStalled) continue;
              journal = open();
              flusher = flusherOf(journal, store, { maxSamples: 3 });
            }
            await flusher.drain();
            expect(store.values).toEqual(Array.from(expected, ([key, value]) => `${key} ${value}`).toSorted());
          }),
      ),
      { numRuns: 30 },
    ));

  it("stores all samples except the invalid ones, and asks for invalid ones of other agents separately", () =>
    withJournal(async ({ open }) => {
      const [journal, store] = [open({ maxLength: 100_000 }), new RecordedStore()];
      const invalid: string[] = [];
      const samples = Array.from({ length: 100 }, (_, i) => sampleOf(`agent-${i % 10}`, i));
      append(journal, ...samples);
      const isBad = ({ apId, tsMs }: AgentSample) => apId === "agent-3" && tsMs > 40;
      store.before = (batch) => {
        if (batch.some(isBad)) throw new TypeError("invalid");
      };
      const onInvalid = (batch: readonly AgentSample[]) => invalid.push(...batch.map(({ tsMs }) => `${tsMs}`));
      await flusherOf(journal, store, { onInvalid, maxLength: 100_000 }).drain();
      expect(invalid.toSorted()).toEqual(["43", "53", "63", "73", "83", "93"]);
      expect(store.values).toHaveLength(94);
      expect(new Set(store.inserts.map(({ token }) => token)).size).toBe(store.inserts.length);
      expect(journal.isEmpty).toBe(true);
    }));

  it("stops to search among the samples of one agent after thirty inserts, and loses none of the others", () =>
    withJournal(async ({ open }) => {
      const [journal, store] = [open({ maxLength: 100_000 }), new RecordedStore()];
      append(
        journal,
        ...Array.from({ length: 90 }, (_, i) => sampleOf("bad", i)),
        ...Array.from({ length: 10 }, (_, i) => sampleOf("good", i)),
      );
      store.before = rejectBad;
      await flusherOf(journal, store, { maxLength: 100_000 }).drain();
      expect(store.inserts.length).toBeLessThan(150);
      expect(store.values).toHaveLength(10);
    }));

  it("uses the same tokens for the parts of a rejected batch after a crash", () =>
    withJournal(async ({ open }) => {
      const [journal, store] = [open(), new RecordedStore()];
      append(journal, sampleOf("bad", 1), sampleOf("good", 1), sampleOf("good", 2));
      store.before = rejectBad;
      store.after = (batch) => {
        if (hasValues(batch)) throw outage();
      };
      await expect(flusherOf(journal, store).drain()).rejects.toThrow(Unavailable);
      store.after = () => {};
      const earlier = store.inserts.splice(0);
      await flusherOf(open(), store).drain();
      expect(store.values).toEqual(["good 1 m 1", "good 2 m 1"]);
      expect(store.inserts).toEqual(earlier);
    }));

  it("keeps everything if the store fails for another reason than the samples", () =>
    withJournal(async ({ open }) => {
      const [journal, store] = [open(), new RecordedStore()];
      append(journal, sampleOf("a", 1));
      let isFailing = true;
      store.before = () => {
        if (isFailing) throw new Error("no permission");
      };
      const flusher = flusherOf(journal, store);
      await expect(flusher.drain()).rejects.toThrow(Unavailable);
      isFailing = false;
      await vi.waitFor(() => expect(journal.isEmpty).toBe(true));
      expect([store.values, flusher.isStalled]).toEqual([["a 1 m 1"], false]);
    }));

  it("writes the samples of different groups of weeks in different inserts", () =>
    withJournal(async ({ open }) => {
      const [journal, store] = [open(), new RecordedStore()];
      const nowMs = Date.UTC(2026, 5, 1);
      append(journal, sampleOf("a", nowMs - 30 * WEEK_MS), sampleOf("a", nowMs), sampleOf("b", nowMs - 20 * WEEK_MS));
      await flusherOf(journal, store, { now: () => nowMs }).drain();
      expect(store.inserts.map(({ samples }) => samples.length)).toEqual([1, 1, 1]);
    }));

  it("waits for more samples between two inserts, but not if a batch is full or a reader waits", () =>
    withJournal(async ({ open }) => {
      const [journal, store] = [open(), new RecordedStore()];
      const flusher = flusherOf(journal, store, { flushMs: 60_000, minFlushMs: 1, maxSamples: 4 });
      const add = (tsMs: number) => {
        append(journal, sampleOf("a", tsMs));
        flusher.start();
      };
      add(1);
      await vi.waitFor(() => expect(store.inserts).toHaveLength(1));
      add(2);
      add(3);
      await scheduler.wait(50);
      expect(store.inserts).toHaveLength(1);
      add(4);
      add(5);
      await vi.waitFor(() => expect(store.inserts.map(({ samples }) => samples.length)).toEqual([1, 4]));
      add(6);
      await flusher.drain();
      expect(store.inserts).toHaveLength(3);
    }));
});

describe("a shard", () => {
  const shard = () => env.AGENT_SHARD.get(env.AGENT_SHARD.idFromName(uniqueName()));
  const sample = (apId: string, tsMs: number, texts: Record<string, string> = {}): AgentSample => ({
    ...{ apId, tsMs, metrics: { m: 1 }, texts },
  });

  const storedIn = async (samples: readonly AgentSample[]) => {
    const stored = await testStore().stored(samples);
    return stored.map(({ apId, tsMs }) => `${apId} ${tsMs}`).toSorted();
  };
  const keysOf = (samples: readonly AgentSample[]) => samples.map(({ apId, tsMs }) => `${apId} ${tsMs}`).toSorted();

  it("stores all but the sample that ClickHouse rejects, of the same and of other agents", async () => {
    const [apId, other, nowMs] = [uniqueName(), uniqueName(), Date.now()];
    const one = shard();
    const samples = [sample(apId, nowMs - 2), sample(apId, nowMs - 1, { t: "\ud800" }), sample(apId, nowMs)];
    const outcomes = await Promise.all([one.append(textOf(samples)), one.append(textOf([sample(other, nowMs)]))]);
    expect(outcomes).toEqual(["committed", "committed"]);
    const valid = [sample(apId, nowMs - 2), sample(apId, nowMs), sample(other, nowMs)];
    await vi.waitFor(async () => expect(await storedIn([...samples, ...valid])).toEqual(keysOf(valid)), 10_000);
    await vi.waitFor(async () => expect(await one.waiting()).toBe(0));
  });

  it("writes a backlog of two years, in several inserts", async () => {
    const [late, nowMs] = [uniqueName(), Date.now()];
    const one = shard();
    const backlog = Array.from({ length: 100 }, (_, week) => sample(late, nowMs - week * WEEK_MS));
    expect(await one.append(textOf(backlog))).toBe("committed");
    await vi.waitFor(async () => expect(await one.waiting()).toBe(0), 20_000);
    // The store's retention is a month.
    expect(await storedIn(backlog.slice(0, 4))).toEqual(keysOf(backlog.slice(0, 4)));
  });

  it("has a sample in its journal when it is acknowledged, and writes it after it was stopped", async () => {
    const [apId, nowMs] = [uniqueName(), Date.now()];
    const one = shard();
    const samples = [sample(apId, nowMs - 1), sample(apId, nowMs)];
    for (const each of samples) expect(await one.append(textOf([each]))).toBe("committed");
    await evictDurableObject(one);
    expect(await runDurableObjectAlarm(one)).toBe(true);
    await vi.waitFor(async () => expect(await storedIn(samples)).toEqual(keysOf(samples)), 10_000);
  });

  it("returns at most 5,000 pending samples of an agent, and writes the others first", async () => {
    const [apId, nowMs] = [uniqueName(), Date.now()];
    const one = shard();
    const samples = Array.from({ length: 6_000 }, (_, i) => sample(apId, nowMs - 6_000 + i));
    expect(await one.append(textOf(samples))).toBe("committed");
    const { text, isStoreDown } = await one.pending(apId, 0, nowMs);
    expect(isStoreDown).toBe(false);
    expect(parseSamples(text).length).toBeLessThanOrEqual(5_000);
    expect((await testStore().newestSamples([apId])).get(apId)).toBe(nowMs - 1);
  });

  it("refuses samples when its journal is full, and accepts them again later", async () => {
    const full = await fullShard();
    const text = textOf([sample(uniqueName(), Date.now())]);
    expect(await full.append(text)).toBe("unavailable");
    await vi.waitFor(async () => expect(await full.append(text)).toBe("committed"), 10_000);
  });
});

describe("the shard client", () => {
  it("refuses samples when more than 32 MiB are in flight in one Worker and continues afterwards", async () => {
    const held = Promise.withResolvers<AppendResult>();
    const namespace = { idFromName: (name: string) => ({ name }), get: () => ({ append: () => held.promise }) };
    const shards = createShardClient(
      namespace as unknown as typeof env.AGENT_SHARD,
      createPlacement({ AGENT_SHARDS: 1, CLICKHOUSE_SHARDS: 1 }),
    );
    const send = () =>
      shards.append([{ apId: "a", tsMs: Date.now(), metrics: {}, texts: { t: "x".repeat(10 * 1024 * 1024) } }]);
    const waiting = [send(), send(), send()];
    await expect(send()).rejects.toThrow(Unavailable);
    held.resolve("committed");
    await Promise.all(waiting);
    await send();
  });
});
