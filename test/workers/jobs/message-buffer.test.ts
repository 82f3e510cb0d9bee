import { env, evictDurableObject, runInDurableObject } from "cloudflare:test";
import { describe, expect, it } from "vitest";
import { MAX_DATA_BYTES, MessageBuffer } from "../../../src/jobs/stream/message-buffer.ts";
import { MAX_IDEMPOTENCY_KEY_LENGTH } from "../../../src/schemas/job.ts";
import { LIMITS, message, NOW, stored, withBuffer } from "./buffer-support.ts";

const ofBytes = (bytes: number) => message(JSON.stringify("x".repeat(bytes - 2)));
const tablesIn = (storage: DurableObjectStorage) => storage.sql.exec("SELECT name FROM sqlite_master").toArray();
const seqs = (buffer: MessageBuffer) => stored(buffer).map(({ seq }) => seq);

describe("the message buffer", () => {
  it("numbers messages from 1 without gaps, and keeps their text unchanged", () =>
    withBuffer(({ buffer }) => {
      const texts = ['[ 1.0, "é\\u00e9" ]', "[1e400]", '{"a" : [ ]}'];
      expect(texts.map((data) => buffer.append(message(data)))).toEqual(
        [1, 2, 3].map((seq) => ({ outcome: "stored", seq })),
      );
      expect(stored(buffer).map(({ data }) => data)).toEqual(texts);
      expect(buffer.bytes).toBe(texts.reduce((sum, text) => sum + new TextEncoder().encode(text).length, 0));
    }));

  it("creates no tables if it is only read", () =>
    withBuffer(({ buffer, storage }) => {
      buffer.expire();
      buffer.acknowledge(7);
      buffer.markSent(7);
      buffer.recordActivity();
      expect([buffer.isEmpty, buffer.lastSeq, buffer.page(0), buffer.gapAfter(0), buffer.room]).toEqual([
        true,
        0,
        [],
        undefined,
        { messages: 5, bytes: 100 },
      ]);
      expect(tablesIn(storage)).toEqual([]);
    }));

  it("returns the first number for a repeated key, even if it is full, acknowledged or closed", () =>
    withBuffer(({ buffer }) => {
      buffer.append(message("[1]", "k"));
      for (let i = 0; i < 4; i++) buffer.append(message());
      expect(buffer.append(message("[2]"))).toMatchObject({ outcome: "full" });
      const repeated = () => expect(buffer.append(message("[2]", "k"))).toEqual({ outcome: "stored", seq: 1 });
      repeated();
      buffer.markSent(5);
      buffer.acknowledge(5);
      repeated();
      buffer.close("cancelled");
      repeated();
      expect(buffer.lastSeq).toBe(5);
    }));

  it("forgets keys that are too old or too many", () =>
    withBuffer(({ buffer, clock, storage }) => {
      const keys = () => storage.sql.exec("SELECT count(*) AS n FROM idempotency").one().n;
      buffer.append(message("[1]", "k"));
      clock.ms += 999;
      expect(buffer.append(message("[1]", "k"))).toMatchObject({ seq: 1 });
      clock.ms += 1;
      expect(buffer.append(message("[1]", "k"))).toMatchObject({ seq: 2 });
      expect(keys()).toBe(1);
      for (let i = 0; i < 20; i++) {
        buffer.append(message("[]", `k${i}`));
        buffer.markSent(buffer.lastSeq);
      }
      expect(keys()).toBe(8);
      expect(buffer.append(message("[1]", "k"))).toMatchObject({ seq: 23 });
    }));

  it("drops sent messages to make room, oldest first, and reports the gap", () =>
    withBuffer(({ buffer }) => {
      for (let i = 0; i < 5; i++) buffer.append(message());
      buffer.markSent(3);
      expect([buffer.append(message()), buffer.append(message())]).toMatchObject([{ seq: 6 }, { seq: 7 }]);
      expect(seqs(buffer)).toEqual([3, 4, 5, 6, 7]);
      expect(buffer.gapAfter(0)).toEqual({ fromSeq: 1, toSeq: 2 });
      expect(buffer.gapAfter(1)).toEqual({ fromSeq: 2, toSeq: 2 });
      expect(buffer.gapAfter(2)).toBeUndefined();
    }));

  it("is full rather than drop unsent messages, until they expire", () =>
    withBuffer(({ buffer, clock }) => {
      for (let i = 0; i < 5; i++) buffer.append(message());
      buffer.markSent(1);
      buffer.append(message());
      buffer.markSent(1);
      expect(buffer.append(message())).toEqual({ outcome: "full", retryAfterS: 1 });
      expect(seqs(buffer)).toEqual([2, 3, 4, 5, 6]);
      clock.ms += 1_000;
      expect(buffer.append(message())).toEqual({ outcome: "stored", seq: 7 });
      expect([seqs(buffer), buffer.gapAfter(0)]).toEqual([[7], { fromSeq: 1, toSeq: 6 }]);
    }));

  it("counts bytes too, and drops nothing if that would not make enough room", () =>
    withBuffer(({ buffer }) => {
      buffer.append(ofBytes(30));
      buffer.append(ofBytes(60));
      buffer.markSent(1);
      expect(buffer.append(ofBytes(41))).toMatchObject({ outcome: "full" });
      expect([seqs(buffer), buffer.bytes]).toEqual([[1, 2], 90]);
      expect(buffer.append(ofBytes(40))).toMatchObject({ outcome: "stored" });
      expect([seqs(buffer), buffer.bytes]).toEqual([[2, 3], 100]);
    }));

  it("asks callers to retry within a minute", () =>
    withBuffer(
      ({ buffer }) => {
        buffer.append(message());
        expect(buffer.append(message())).toEqual({ outcome: "full", retryAfterS: 60 });
      },
      { ...LIMITS, messages: 1, retentionMs: 86_400_000 },
    ));

  it("drops acknowledged messages without a gap, and none that were not sent", () =>
    withBuffer(({ buffer }) => {
      for (let i = 0; i < 4; i++) buffer.append(message());
      buffer.markSent(2);
      buffer.acknowledge(99);
      expect([buffer.acknowledgedUpTo, seqs(buffer), buffer.gapAfter(2)]).toEqual([2, [3, 4], undefined]);
      buffer.acknowledge(1);
      expect(buffer.acknowledgedUpTo).toBe(2);
    }));

  it("keeps acknowledged messages that another socket still needs", () =>
    withBuffer(({ buffer }) => {
      for (let i = 0; i < 4; i++) buffer.append(message());
      buffer.markSent(4);
      buffer.acknowledge(4, 1);
      expect([buffer.acknowledgedUpTo, seqs(buffer)]).toEqual([4, [2, 3, 4]]);
      buffer.release(Number.POSITIVE_INFINITY);
      expect([seqs(buffer), buffer.lastSeq]).toEqual([[], 4]);
    }));

  it("continues its numbers after all messages were dropped", () =>
    withBuffer(({ buffer, reopen }) => {
      buffer.append(message());
      buffer.markSent(1);
      buffer.acknowledge(1);
      expect(reopen().append(message())).toEqual({ outcome: "stored", seq: 2 });
    }));

  it("rejects rows that Cloudflare would reject", () =>
    withBuffer(
      ({ buffer }) => {
        expect(buffer.append(ofBytes(MAX_DATA_BYTES))).toMatchObject({ outcome: "stored" });
        expect(buffer.append(ofBytes(MAX_DATA_BYTES + 1))).toEqual({ outcome: "too_large" });
        expect(buffer.append(message(JSON.stringify("é".repeat(MAX_DATA_BYTES / 2))))).toEqual({
          outcome: "too_large",
        });
        expect(buffer.append(message("[]", "k".repeat(MAX_IDEMPOTENCY_KEY_LENGTH + 1)))).toEqual({
          outcome: "too_large",
        });
      },
      { ...LIMITS, bytes: 16 * 1024 * 1024 },
    ));

  it("returns pages of limited size", () =>
    withBuffer(
      ({ buffer }) => {
        for (let i = 0; i < 4; i++) buffer.append(ofBytes(400_000));
        for (let i = 0; i < 100; i++) buffer.append(message());
        expect([buffer.page(0), buffer.page(3), buffer.page(67)].map((page) => page.length)).toEqual([3, 64, 37]);
        expect(seqs(buffer)).toEqual(Array.from({ length: 104 }, (_, i) => i + 1));
      },
      { ...LIMITS, messages: 1_000, bytes: 16 * 1024 * 1024 },
    ));

  it("expires messages in order, even if the clock was set back", () =>
    withBuffer(({ buffer, clock }) => {
      buffer.append(message());
      clock.ms -= 500;
      buffer.append(message());
      clock.ms += 1_400;
      buffer.expire();
      expect(seqs(buffer)).toEqual([1, 2]);
      clock.ms += 100;
      buffer.expire();
      expect(seqs(buffer)).toEqual([]);
    }));

  it("keeps its state when the object is evicted", async () => {
    const stub = env.JOB_STREAM.getByName(crypto.randomUUID());
    const inside = <R>(test: (buffer: MessageBuffer) => R) =>
      runInDurableObject(stub, (_, { storage }) =>
        test(new MessageBuffer({ storage, limits: LIMITS, now: () => NOW })),
      );
    await inside((buffer) => {
      for (let i = 0; i < 3; i++) buffer.append(message(`[${i}]`, `k${i}`));
      buffer.markSent(2);
      buffer.acknowledge(1);
      buffer.close("expired");
    });
    await evictDurableObject(stub);
    await inside((buffer) => {
      expect([buffer.lastSeq, buffer.sentUpTo, buffer.acknowledgedUpTo, buffer.closed]).toEqual([3, 2, 1, "expired"]);
      expect(stored(buffer).map(({ data }) => data)).toEqual(["[1]", "[2]"]);
      expect(buffer.append(message("[]", "k0"))).toEqual({ outcome: "stored", seq: 1 });
      expect(buffer.append(message())).toEqual({ outcome: "closed", state: "expired" });
    });
  });
});
