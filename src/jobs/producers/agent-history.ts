import * as z from "zod";
import { asJsonText, encodeJson, type JsonText } from "../../lib/encoding.ts";
import { toIsoTime } from "../../lib/iso-time.ts";
import type { Readings } from "../../telemetry/readings.ts";
import type { ShardClient } from "../../telemetry/shard/shard-client.ts";
import type { AgentSample } from "../../telemetry/store/telemetry-store.ts";
import { countThatFits, type Producer, type ProducerStep } from "./producer.ts";

/**
 * Produces an agent's data over a period. Reads stored rows first; if the period ends in the future, then follows the shard's change
 * feed until the end. Leaves out no row. A row may appear twice if both sources have it: at the transition from the store to the feed,
 * and after the shard restarted.
 */

const FeedCursor = z.object({ epoch: z.string(), seq: z.int() });

/** Cursors are stored: their field names and values must not change. */
const StoredPhase = z.object({
  phase: z.literal("past"),
  fromMs: z.number(),
  toMs: z.number(),
  of: z.enum(["numbers", "texts"]),
  after: z.object({ field: z.string(), tsMs: z.number() }).optional(),
  /** Where to follow the feed afterwards. Read before the stored rows, so that no sample is missed in between. */
  place: FeedCursor.optional(),
});
type StoredPhase = z.output<typeof StoredPhase>;

const LivePhase = z.object({
  phase: z.literal("live"),
  place: FeedCursor,
  /** If the feed is incomplete, the producer reads the store again from about this time. */
  safeMs: z.number(),
});
type LivePhase = z.output<typeof LivePhase>;

const Cursor = z.discriminatedUnion("phase", [StoredPhase, LivePhase]);

const RowKey = z.object({ time: z.string(), field: z.string() });

/** Rows per query: enough for several messages. Strings may be long, and all rows of a query are in memory. */
const READ_AHEAD = { numbers: 20_000, texts: 1_000 } as const;
const MAX_WAIT_MS = 20_000;
/** Maximum delay of a sample: the producer reads the store again from this long before `safeMs`. */
const LATE_MS = 60_000;

export interface HistoryOptions {
  readings: Pick<Readings, "history" | "countHistory">;
  shards: Pick<ShardClient, "news">;
  range: { apId: string; fromMs: number; toMs: number };
  now: () => number;
}

export function produceAgentHistory({ readings, shards, range, now }: HistoryOptions): Producer {
  const { apId } = range;
  /** Rows of the last query that were not sent yet, and the cursor that they follow. */
  let prefetched: { cursor: string; rows: JsonText[] } = { cursor: "", rows: [] };

  const start = async (): Promise<ProducerStep> => {
    const isLive = range.toMs > now();
    const place = isLive ? (await shards.news(apId, undefined, 0)).place : undefined;
    const toMs = Math.min(range.toMs, now());
    const estimated = toMs < range.fromMs ? 0 : await readings.countHistory({ ...range, toMs });
    const cursor: StoredPhase = { phase: "past", fromMs: range.fromMs, toMs, of: "numbers", place };
    return { rows: [], cursor, isLast: false, estimated };
  };

  const readStore = async ({ fromMs, toMs, of, after }: StoredPhase): Promise<JsonText[]> => {
    const rows = await readings.history({ apId, fromMs, toMs, of, after, limit: READ_AHEAD[of] });
    return rows.map(asJsonText);
  };

  const produceStored = async (cursor: StoredPhase): Promise<ProducerStep> => {
    const { toMs, of, place } = cursor;
    const rows = prefetched.cursor === JSON.stringify(cursor) ? prefetched.rows : await readStore(cursor);
    if (rows.length > 0) {
      const count = countThatFits(rows);
      const last = RowKey.parse(JSON.parse(rows[count - 1] ?? "null"));
      const next: StoredPhase = { ...cursor, after: { field: last.field, tsMs: Date.parse(last.time) } };
      prefetched =
        count < rows.length ? { cursor: JSON.stringify(next), rows: rows.slice(count) } : { cursor: "", rows: [] };
      return { rows: rows.slice(0, count), cursor: next, isLast: false };
    }
    if (of === "numbers") return { rows: [], cursor: { ...cursor, of: "texts", after: undefined }, isLast: false };
    if (place === undefined) return { rows: [], cursor, isLast: true };
    const live: LivePhase = { phase: "live", place, safeMs: toMs };
    return { rows: [], cursor: live, isLast: false };
  };

  const produceLive = async ({ place, safeMs }: LivePhase): Promise<ProducerStep> => {
    const requestedMs = now();
    const leftMs = range.toMs - requestedMs;
    const page = await shards.news(apId, place, Math.max(0, Math.min(leftMs, MAX_WAIT_MS)));
    if (page.isIncomplete) {
      const fromMs = Math.max(range.fromMs, safeMs - LATE_MS);
      const toMs = Math.min(range.toMs, now());
      const cursor: StoredPhase = { phase: "past", fromMs, toMs, of: "numbers", place: page.place };
      return { rows: [], cursor, isLast: false };
    }
    const rows = page.samples.filter(({ tsMs }) => tsMs >= range.fromMs && tsMs <= range.toMs).flatMap(toRows);
    const next: LivePhase = { phase: "live", place: page.place, safeMs: requestedMs };
    return { rows, cursor: next, isLast: leftMs <= 0 };
  };

  return {
    async next(cursor) {
      if (cursor === undefined) return await start();
      const parsed = Cursor.parse(cursor);
      return parsed.phase === "past" ? await produceStored(parsed) : await produceLive(parsed);
    },
  };
}

function toRows({ tsMs, metrics, texts }: AgentSample): JsonText[] {
  const time = toIsoTime(tsMs);
  return Object.entries({ ...metrics, ...texts }).map(([field, value]) => encodeJson({ time, field, value }));
}
