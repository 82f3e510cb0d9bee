import { describe, expect, it } from "vitest";
import { append, sampleOf, textOf, withJournal } from "./journal-support.ts";

const range = (last: number, token = "t") => ({ last, token, atMs: 1 });

describe("the journal", () => {
  it("keeps samples across a restart, in their order", () =>
    withJournal(({ open }) => {
      const journal = open();
      append(journal, sampleOf("a", 1), sampleOf("b", 1));
      append(journal, sampleOf("a", 2));
      for (const one of [journal, open()]) {
        expect([one.count, one.has("a"), one.has("c"), one.oldestMs]).toEqual([3, true, false, 1]);
        expect(one.samplesOf("a")).toEqual([sampleOf("a", 1), sampleOf("a", 2)]);
        expect(one.next(100, 10_000).map(({ seq }) => seq)).toEqual([1, 2]);
      }
    }));

  it("does not use the number of a row again, even if all rows were deleted before a restart", () =>
    withJournal(({ open }) => {
      const journal = open();
      append(journal, sampleOf("a", 1));
      journal.begin(range(1), []);
      journal.end(range(1));
      expect([journal.isEmpty, journal.range, open().isEmpty]).toEqual([true, undefined, true]);
      expect(append(open(), sampleOf("a", 2)).map(({ seq }) => seq)).toEqual([2]);
    }));

  it("remembers the range on its way, its token and its changed rows across a restart", () =>
    withJournal(({ open }) => {
      const journal = open();
      append(journal, sampleOf("a", 1), sampleOf("a", 2));
      append(journal, sampleOf("a", 3));
      journal.begin(range(1, "token"), [{ seq: 1, samples: [sampleOf("a", 1, {}), sampleOf("a", 2)] }]);
      append(journal, sampleOf("a", 4));
      const again = open();
      expect([again.range, again.count]).toEqual([range(1, "token"), 4]);
      expect(again.rowsOf(range(1))).toEqual([{ seq: 1, samples: [sampleOf("a", 1, {}), sampleOf("a", 2)] }]);
      again.end(range(1));
      expect([again.range, again.samplesOf("a").map(({ tsMs }) => tsMs)]).toEqual([undefined, [3, 4]]);
    }));

  it("replays what was stored since the last checkpoint, also if the telemetry store has it", () =>
    withJournal(({ open, storage }) => {
      const options = { isReplayed: true };
      const journal = open(options);
      append(journal, sampleOf("a", 1));
      journal.checkpoint();
      append(journal, sampleOf("a", 2));
      append(journal, sampleOf("a", 3));
      journal.begin(range(2), []);
      journal.end(range(2));
      // The first row is needed by neither, the second one by a replay, and the third one by the telemetry store as well.
      const again = open(options);
      expect([...again.replay()].map(({ tsMs }) => tsMs)).toEqual([2, 3]);
      expect([again.count, again.firstSeq, again.lastSeq]).toEqual([1, 3, 3]);
      again.checkpoint();
      const rows = storage.sql.exec("SELECT seq FROM journal").toArray();
      expect(rows).toEqual([{ seq: 3 }]);
    }));

  it("divides long calls into rows, and a long sample into pieces", () =>
    withJournal(({ open, storage }) => {
      const many = Array.from({ length: 60 }, (_, i) => sampleOf("a", i));
      const long = sampleOf("b", 1, Object.fromEntries(Array.from({ length: 300 }, (_, i) => [`metric ${i}`, i])));
      const journal = open();
      append(journal, ...many, long);
      const rows = storage.sql.exec("SELECT length(samples) AS length FROM journal").toArray();
      expect(rows.length).toBeGreaterThan(5);
      expect(Math.max(...rows.map(({ length }) => Number(length)))).toBeLessThanOrEqual(1_000);
      for (const one of [journal, open()]) {
        expect(one.samplesOf("a")).toEqual(many);
        const pieces = one.samplesOf("b");
        expect(new Set(pieces.map(({ tsMs }) => tsMs))).toEqual(new Set([1]));
        expect(Object.assign({}, ...pieces.map(({ metrics }) => metrics))).toEqual(long.metrics);
      }
    }));

  it("has no room beyond its limit, and room again when rows are deleted", () =>
    withJournal(({ open }) => {
      const journal = open();
      const samples = [sampleOf("a", 1)];
      const { length } = textOf(samples);
      while (journal.hasRoomFor(length)) journal.append(textOf(samples), samples);
      expect(journal.length).toBeGreaterThan(10_000 - length);
      expect(journal.length).toBeLessThanOrEqual(10_000);
      const last = range(journal.lastSeq);
      journal.begin(last, []);
      journal.end(last);
      expect([journal.length, journal.count, journal.hasRoomFor(length)]).toEqual([0, 0, true]);
    }));

  it("returns the same samples if memory holds only some of them", () =>
    withJournal(({ open }) => {
      const journal = open({ maxCachedLength: 100 });
      const samples = Array.from({ length: 20 }, (_, i) => sampleOf(i % 2 === 0 ? "a" : "b", i));
      for (const sample of samples) append(journal, sample);
      expect([...journal.rows()].flatMap((row) => row.samples)).toEqual(samples);
      expect(journal.samplesOf("b").map(({ tsMs }) => tsMs)).toEqual([1, 3, 5, 7, 9, 11, 13, 15, 17, 19]);
    }));

  it("returns the first rows up to a limit, and at least one", () =>
    withJournal(({ open }) => {
      const journal = open();
      for (let i = 0; i < 5; i++) append(journal, sampleOf("a", 2 * i), sampleOf("a", 2 * i + 1));
      const { length } = textOf([sampleOf("a", 1), sampleOf("a", 2)]);
      expect(journal.next(5, 10_000)).toHaveLength(2);
      expect(journal.next(100, 3 * length)).toHaveLength(3);
      expect(journal.next(1, 1)).toHaveLength(1);
    }));
});
