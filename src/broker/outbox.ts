import { and, asc, count, eq, gt, inArray, lte, min, type SQL, sql } from "drizzle-orm";
import * as z from "zod";
import { type Database, query } from "../storage/libsql.ts";
import { outbox } from "./outbox-table.ts";

/** What is to be published, in libSQL. It is put there together with what it belongs to, by whoever stores that. */
export interface Outbox {
  /** What is due, oldest first. */
  due(limit: number): Promise<OutboxMessage[]>;
  /** The broker has acknowledged these; unless somebody shows that they have arrived, they are published again. */
  published(messages: readonly OutboxMessage[]): Promise<void>;
  /** These cannot be published as they are. They make way for others until it is tried again. */
  postpone(messages: readonly OutboxMessage[]): Promise<void>;
  /** Takes a job's messages away, or one of them: somebody has shown that they arrived, or nobody is to hear them any more. */
  withdraw(jobNumber: string, part?: number): Promise<void>;
  /** The jobs whose messages nobody has heard in time, those first that have been over for the longest. */
  expired(limit: number): Promise<string[]>;
  state(): Promise<OutboxState>;
}

const OutboxMessage = z.object({
  id: z.int(),
  jobNumber: z.string(),
  topic: z.string(),
  payload: z.string(),
  published: z.int(),
});
export type OutboxMessage = z.output<typeof OutboxMessage>;

export interface NewOutboxMessage {
  jobNumber: string;
  part: number;
  topic: string;
  /** Sealed, as belonging to its job. */
  payload: string;
}

/** The statement that puts a message there, for the same batch as what it belongs to. */
export function outboxInsert(database: Database, message: NewOutboxMessage, createdMs: number, expiresMs: number) {
  const at = new Date(createdMs);
  return database
    .insert(outbox)
    .values({ ...message, createdAt: at, dueAt: at, expiresAt: new Date(expiresMs), published: 0 });
}

export interface OutboxState {
  messages: number;
  /** How long the oldest has been waiting to be published for the first time. */
  oldestMs: number;
  /** When the next one is due or over. */
  nextMs: number;
}

const FIRST_REPEAT_MS = 3_000;
/** Not seldom either: a command, which has a minute, is repeated every ten seconds to its end. */
const MAX_REPEAT_MS = sql`min(60000, (${outbox.expiresAt} - ${outbox.createdAt}) / 6)`;
const REPEAT_MS = sql`min(${FIRST_REPEAT_MS} << min(${outbox.published}, 10), ${MAX_REPEAT_MS})`;

export function createOutbox(database: Database, now: () => number = () => Date.now()): Outbox {
  /** Counts messages as published so many times more, and has them come again after a pause. */
  const repeat = async (messages: readonly OutboxMessage[], times: number, pauseMs: SQL): Promise<void> => {
    if (messages.length === 0) return;
    const ids = messages.map(({ id }) => id);
    await query(
      database
        .update(outbox)
        .set({ published: sql`${outbox.published} + ${times}`, dueAt: sql`${now()} + ${pauseMs}` })
        .where(inArray(outbox.id, ids)),
    );
  };

  return {
    async due(limit) {
      const at = new Date(now());
      const rows = await query(
        database
          .select({
            id: outbox.id,
            jobNumber: outbox.jobNumber,
            topic: outbox.topic,
            payload: outbox.payload,
            published: outbox.published,
          })
          .from(outbox)
          .where(and(lte(outbox.dueAt, at), gt(outbox.expiresAt, at)))
          .orderBy(asc(outbox.dueAt), asc(outbox.id))
          .limit(limit),
      );
      return z.array(OutboxMessage).parse(rows);
    },

    published: (messages) => repeat(messages, 1, REPEAT_MS),
    postpone: (messages) => repeat(messages, 0, MAX_REPEAT_MS),

    async withdraw(jobNumber, part) {
      const ofJob = eq(outbox.jobNumber, jobNumber);
      await query(database.delete(outbox).where(part === undefined ? ofJob : and(ofJob, eq(outbox.part, part))));
    },

    async expired(limit) {
      const rows = await query(
        database
          .select({ jobNumber: outbox.jobNumber })
          .from(outbox)
          .where(lte(outbox.expiresAt, new Date(now())))
          .groupBy(outbox.jobNumber)
          .orderBy(min(outbox.expiresAt))
          .limit(limit),
      );
      return rows.map(({ jobNumber }) => jobNumber);
    },

    async state() {
      const [[all], [waiting]] = await query(
        database.batch([
          database
            .select({ messages: count(), dueAt: min(outbox.dueAt), expiresAt: min(outbox.expiresAt) })
            .from(outbox),
          database
            .select({ oldest: min(outbox.createdAt) })
            .from(outbox)
            .where(eq(outbox.published, 0)),
        ]),
      );
      const nextMs = Math.min(...[all?.dueAt, all?.expiresAt].map((at) => at?.getTime() ?? Number.POSITIVE_INFINITY));
      const oldestMs = waiting?.oldest == null ? 0 : Math.max(0, now() - waiting.oldest.getTime());
      return { messages: all?.messages ?? 0, oldestMs, nextMs };
    },
  };
}
