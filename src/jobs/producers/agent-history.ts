import * as z from "zod";
import { toIsoTime } from "../../lib/iso-time.ts";
import type { ShardClient } from "../../telemetry/shard/shard-client.ts";
import type { AgentSample, TelemetryStore } from "../../telemetry/store/telemetry-store.ts";
import { countThatFits, type Producer, type ProducerStep } from "./producer.ts";

/**
 * An agent's data over a period: its past out of the store and, where the period ends in the future, then what comes until then.
 * No row is left out. Where both have it, at the seam between the two and after a shard's end, a row may come twice.
 */

const Place = z.object({ epoch: z.string(), seq: z.int() });

const Past = z.object({
  phase: z.literal("past"),
  fromMs: z.number(),
  toMs: z.number(),
  of: z.enum(["numbers", "texts"]),
  after: z.object({ field: z.string(), tsMs: z.number() }).optional(),
  /** What came after this place follows. Taken before the past was read, so that nothing is left out in between. */
  place: Place.optional(),
});
type Past = z.output<typeof Past>;

const Live = z.object({
  phase: z.literal("live"),
  place: Place,
  /** Where the shard cannot tell all that came since, the store is read again from here on. */
  safeMs: z.number(),
});
type Live = z.output<typeof Live>;

const Cursor = z.discriminatedUnion("phase", [Past, Live]);

const Row = z.object({ time: z.string(), field: z.string() });

/** Rows read at once from the store: several messages' worth. Texts may be long, and what is read is all in memory. */
const READ_AHEAD = { numbers: 20_000, texts: 1_000 } as const;
const MAX_WAIT_MS = 20_000;
/** Samples may be so late that they are older than what came before them. */
const LATE_MS = 60_000;

export interface HistoryOptions {
  store: Pick<TelemetryStore, "history" | "countHistory">;
  shards: Pick<ShardClient, "news">;
  range: { apId: string; fromMs: number; toMs: number };
  now: () => number;
}

export function produceAgentHistory({ store, shards, range, now }: HistoryOptions): Producer {
  const { apId } = range;
  /** Rows that were read already, and the cursor that they follow on. */
  let ahead: { cursor: string; rows: string[] } = { cursor: "", rows: [] };

  const begin = async (): Promise<ProducerStep> => {
    const isLive = range.toMs > now();
    const place = isLive ? (await shards.news(apId, undefined, 0)).place : undefined;
    const toMs = Math.min(range.toMs, now());
    const estimated = toMs < range.fromMs ? 0 : await store.countHistory({ ...range, toMs });
    const cursor: Past = { phase: "past", fromMs: range.fromMs, toMs, of: "numbers", place };
    return { rows: [], cursor, isLast: false, estimated };
  };

  const past = async (cursor: Past): Promise<ProducerStep> => {
    const { fromMs, toMs, of, after, place } = cursor;
    const rows =
      ahead.cursor === JSON.stringify(cursor)
        ? ahead.rows
        : await store.history({ apId, fromMs, toMs, of, after, limit: READ_AHEAD[of] });
    if (rows.length > 0) {
      const count = countThatFits(rows);
      const last = Row.parse(JSON.parse(rows[count - 1] ?? "null"));
      const next: Past = { ...cursor, after: { field: last.field, tsMs: Date.parse(last.time) } };
      ahead =
        count < rows.length ? { cursor: JSON.stringify(next), rows: rows.slice(count) } : { cursor: "", rows: [] };
      return { rows: rows.slice(0, count), cursor: next, isLast: false };
    }
    if (of === "numbers") return { rows: [], cursor: { ...cursor, of: "texts", after: undefined }, isLast: false };
    if (place === undefined) return { rows: [], cursor, isLast: true };
    const live: Live = { phase: "live", place, safeMs: toMs };
    return { rows: [], cursor: live, isLast: false };
  };

  const live = async ({ place, safeMs }: Live): Promise<ProducerStep> => {
    const askedMs = now();
    const leftMs = range.toMs - askedMs;
    const news = await shards.news(apId, place, Math.max(0, Math.min(leftMs, MAX_WAIT_MS)));
    if (news.isIncomplete) {
      const fromMs = Math.max(range.fromMs, safeMs - LATE_MS);
      const again: Past = {
        phase: "past",
        fromMs,
        toMs: Math.min(range.toMs, now()),
        of: "numbers",
        place: news.place,
      };
      return { rows: [], cursor: again, isLast: false };
    }
    const rows = news.samples
      .filter(({ tsMs }) => tsMs >= range.fromMs && tsMs <= range.toMs)
      .flatMap((sample) => rowsOf(sample));
    const next: Live = { phase: "live", place: news.place, safeMs: askedMs };
    return { rows, cursor: next, isLast: leftMs <= 0 };
  };

  return {
    async next(cursor) {
      if (cursor === undefined) return await begin();
      const parsed = Cursor.parse(cursor);
      return parsed.phase === "past" ? await past(parsed) : await live(parsed);
    },
  };
}

function rowsOf({ tsMs, metrics, texts }: AgentSample): string[] {
  const time = toIsoTime(tsMs);
  return Object.entries({ ...metrics, ...texts }).map(([field, value]) => JSON.stringify({ time, field, value }));
}
