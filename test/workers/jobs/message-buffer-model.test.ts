import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { encodeJson } from "../../../src/lib/encoding.ts";
import { LIMITS, message, NOW, stored, withBuffer } from "./buffer-support.ts";

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
