import { env, evictDurableObject, runInDurableObject } from "cloudflare:test";
import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { encodeGap, encodeMessage, type StoredMessage } from "../../../src/jobs/stream/envelope.ts";
import { type BufferLimits, MAX_DATA_BYTES, MessageBuffer } from "../../../src/jobs/stream/message-buffer.ts";
import { MAX_KEY_LENGTH } from "../../../src/jobs/stream/message-store.ts";
import { asJsonText, encodeJson } from "../../../src/lib/json-text.ts";

const NOW = 1_800_000_000_000;
const LIMITS: BufferLimits = { messages: 5, bytes: 100, retentionMs: 1_000, keys: 8 };

interface Buffered {
  buffer: MessageBuffer;
  clock: { ms: number };
  storage: DurableObjectStorage;
  /** Returns another buffer over the same tables, as after a restart. */
  reopen(): MessageBuffer;
}

/** Runs a test with a buffer in the storage of a new object. */
function withBuffer<R>(test: (buffered: Buffered) => R | Promise<R>, limits = LIMITS): Promise<R> {
  return runInDurableObject(env.JOB_STREAM.getByName(crypto.randomUUID()), (_, { storage }) => {
    const clock = { ms: NOW };
    const reopen = () => new MessageBuffer({ storage, limits, now: () => clock.ms });
    return test({ buffer: reopen(), clock, storage, reopen });
  });
}

const message = (data = "[]", key?: string) => ({ type: "agent_data" as const, data: asJsonText(data), key });
const ofBytes = (bytes: number) => message(JSON.stringify("x".repeat(bytes - 2)));
const tablesIn = (storage: DurableObjectStorage) => storage.sql.exec("SELECT name FROM sqlite_master").toArray();

/** Returns all stored messages, page by page. */
function stored(buffer: MessageBuffer, after = 0): StoredMessage[] {
  const all: StoredMessage[] = [];
  for (let page = buffer.page(after); page.length > 0; page = buffer.page(all.at(-1)?.seq ?? 0)) all.push(...page);
  return all;
}
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
        expect(buffer.append(message("[]", "k".repeat(MAX_KEY_LENGTH + 1)))).toEqual({ outcome: "too_large" });
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

describe("the message buffer under random events", () => {
  type Step =
    | { do: "append"; bytes: number; key: number | undefined }
    | { do: "send"; share: number }
    | { do: "acknowledge"; seq: number; neededBack: number | undefined }
    | { do: "wait"; ms: number }
    | { do: "restart" };
  const step: fc.Arbitrary<Step> = fc.oneof(
    {
      weight: 6,
      arbitrary: fc.record({
        do: fc.constant("append" as const),
        bytes: fc.integer({ min: 2, max: 60 }),
        key: fc.option(fc.nat(3), { nil: undefined }),
      }),
    },
    {
      weight: 3,
      arbitrary: fc.record({ do: fc.constant("send" as const), share: fc.double({ min: 0, max: 1, noNaN: true }) }),
    },
    {
      weight: 2,
      arbitrary: fc.record({
        do: fc.constant("acknowledge" as const),
        seq: fc.nat(30),
        neededBack: fc.option(fc.nat(4), { nil: undefined }),
      }),
    },
    { weight: 2, arbitrary: fc.record({ do: fc.constant("wait" as const), ms: fc.integer({ min: 1, max: 700 }) }) },
    { weight: 1, arbitrary: fc.record({ do: fc.constant("restart" as const) }) },
  );

  /** One appended message of the model. */
  interface Modelled {
    seq: number;
    data: string;
    tsMs: number;
    key: string | undefined;
    isSent: boolean;
    isDropped: boolean;
  }

  it("behaves as modelled", () =>
    withBuffer(async ({ clock, storage, reopen }) => {
      let steps = 0;
      const run = (script: Step[]) => {
        clock.ms = NOW;
        let buffer = reopen();
        const all: Modelled[] = [];
        let acknowledged = 0;
        const remaining = () => all.filter(({ isDropped }) => !isDropped);
        const sizeOf = (messages: Modelled[]) => messages.reduce((sum, { data }) => sum + data.length, 0);
        const expire = () => {
          for (const each of all) each.isDropped ||= each.tsMs + LIMITS.retentionMs <= clock.ms;
        };
        for (const next of script) {
          steps++;
          switch (next.do) {
            case "append": {
              const key = next.key === undefined ? undefined : `k${next.key}`;
              const data = encodeJson("x".repeat(next.bytes - 2));
              const outcome = buffer.append(message(data, key));
              expire();
              const first = all.findLast(
                (each) =>
                  key !== undefined &&
                  each.key === key &&
                  each.tsMs + LIMITS.retentionMs > clock.ms &&
                  each.seq > all.length - LIMITS.keys,
              );
              if (first !== undefined) {
                expect(outcome).toEqual({ outcome: "stored", seq: first.seq });
                break;
              }
              const fits = (messages: Modelled[]) =>
                messages.length < LIMITS.messages && sizeOf(messages) + data.length <= LIMITS.bytes;
              if (!fits(remaining().filter(({ isSent }) => !isSent))) {
                expect(outcome).toMatchObject({ outcome: "full" });
                break;
              }
              while (!fits(remaining())) for (const oldest of remaining().slice(0, 1)) oldest.isDropped = true;
              const seq = all.length + 1;
              expect(outcome).toEqual({ outcome: "stored", seq });
              all.push({ seq, data, tsMs: clock.ms, key, isSent: false, isDropped: false });
              break;
            }
            case "send": {
              const upTo = Math.round(all.length * next.share);
              buffer.markSent(upTo);
              for (const each of all) each.isSent ||= each.seq <= upTo;
              break;
            }
            case "acknowledge": {
              const needed = next.neededBack === undefined ? Number.POSITIVE_INFINITY : all.length - next.neededBack;
              buffer.acknowledge(next.seq, needed);
              acknowledged = Math.max(acknowledged, Math.min(next.seq, all.filter(({ isSent }) => isSent).length));
              for (const each of all) each.isDropped ||= each.seq <= Math.min(acknowledged, needed);
              break;
            }
            case "wait":
              clock.ms += next.ms;
              buffer.expire();
              expire();
              break;
            case "restart":
              buffer = reopen();
              break;
          }
          expect(stored(buffer).map(({ seq, data, tsMs }) => ({ seq, data, tsMs }))).toEqual(
            remaining().map(({ seq, data, tsMs }) => ({ seq, data, tsMs })),
          );
          expect([buffer.lastSeq, buffer.messages, buffer.bytes, buffer.acknowledgedUpTo]).toEqual([
            all.length,
            remaining().length,
            sizeOf(remaining()),
            acknowledged,
          ]);
          // A gap reports every message that was dropped unread. Only expiry drops unsent messages.
          const lost = all.filter(({ seq, isDropped }) => isDropped && seq > acknowledged).map(({ seq }) => seq);
          const gap = buffer.gapAfter(acknowledged);
          expect(gap).toEqual(lost.length === 0 ? undefined : { fromSeq: lost[0], toSeq: lost.at(-1) });
          expect(lost.length).toBe(gap === undefined ? 0 : gap.toSeq - gap.fromSeq + 1);
          for (const each of all) {
            if (each.isDropped && !each.isSent) expect(each.tsMs + LIMITS.retentionMs).toBeLessThanOrEqual(clock.ms);
          }
        }
      };
      await fc.assert(
        fc.asyncProperty(fc.array(step, { minLength: 10, maxLength: 80, size: "max" }), async (script) => {
          await storage.deleteAll();
          run(script);
        }),
        { numRuns: 150 },
      );
      expect(steps).toBeGreaterThan(4_000);
    }));
});

describe("the encoding of messages", () => {
  const storedMessage = (over: Omit<Partial<StoredMessage>, "data"> & { data?: string }): StoredMessage => ({
    seq: 3,
    type: "agent_data",
    tsMs: NOW,
    final: false,
    bytes: 11,
    ...over,
    data: asJsonText(over.data ?? '[{"a":1.0}]'),
  });

  it("carries the data unchanged, in an envelope or bare", () => {
    const ts = new Date(NOW).toISOString();
    expect(encodeMessage("envelope", 'j"1', storedMessage({}))).toBe(
      `{"job_number":"j\\"1","seq":3,"type":"agent_data","ts":"${ts}","final":false,"data":[{"a":1.0}]}`,
    );
    expect(encodeMessage("bare", "j", storedMessage({}))).toBe('[{"a":1.0}]');
  });

  it("encodes only arrays of data for a bare socket", () => {
    expect(encodeMessage("bare", "j", storedMessage({ type: "status", data: "[]" }))).toBeUndefined();
    expect(encodeMessage("bare", "j", storedMessage({ type: "error", data: "[]" }))).toBeUndefined();
    expect(encodeMessage("bare", "j", storedMessage({ type: "command", data: '{"a":1}' }))).toBeUndefined();
    expect(encodeMessage("bare", "j", storedMessage({ type: "emulator", data: " \n[]" }))).toBe(" \n[]");
    expect(encodeGap("bare", "j", { fromSeq: 1, toSeq: 2 }, NOW)).toBeUndefined();
  });

  it("reports a gap with the number of the last missing message", () => {
    expect(JSON.parse(encodeGap("envelope", "j", { fromSeq: 2, toSeq: 9 }, NOW) ?? "")).toMatchObject({
      seq: 9,
      type: "gap",
      final: false,
      data: [{ from_seq: 2, to_seq: 9 }],
    });
  });
});
