import { and, asc, count, eq, gt, inArray, lte, min, type SQL, sql } from "drizzle-orm";
import * as z from "zod";
import { type Database, query } from "../storage/libsql.ts";
import { outbox } from "./outbox-table.ts";

/** The messages to publish, in libSQL. The stores of commands and spin-ups insert them together with their jobs. */
export interface Outbox {
  /** Returns messages that are due, oldest first. */
  due(limit: number): Promise<OutboxMessage[]>;
  /** Records that the broker has acknowledged messages. They are published again later, unless they are withdrawn. */
  markPublished(messages: readonly OutboxMessage[]): Promise<void>;
  /** Delays messages that cannot be published now, so that they do not block others. */
  postpone(messages: readonly OutboxMessage[]): Promise<void>;
  /** Deletes a job's messages, or one of them, because the receiver has confirmed them or they are no longer needed. */
  withdraw(jobNumber: string, part?: number): Promise<void>;
  /** Returns the jobs with expired messages, oldest first. */
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
  /** Encrypted for its job number. */
  payload: string;
}

/** Returns the statement that inserts a message, for the same batch as its job. */
export function outboxInsert(database: Database, message: NewOutboxMessage, createdMs: number, expiresMs: number) {
  const createdAt = new Date(createdMs);
  return database
    .insert(outbox)
    .values({ ...message, createdAt, dueAt: createdAt, expiresAt: new Date(expiresMs), published: 0 });
}

export interface OutboxState {
  messages: number;
  /** Time that the oldest message has waited for its first publication. */
  oldestMs: number;
  /** Time at which the next message is due or expires. */
  nextMs: number;
}

const FIRST_REPEAT_MS = 3_000;
/** A sixth of the message's lifetime, so that a command, which has a minute, is repeated every ten seconds. */
const MAX_REPEAT_MS = sql`min(60000, (${outbox.expiresAt} - ${outbox.createdAt}) / 6)`;
const REPEAT_MS = sql`min(${FIRST_REPEAT_MS} << min(${outbox.published}, 10), ${MAX_REPEAT_MS})`;

export function createOutbox(database: Database, now: () => number = () => Date.now()): Outbox {
  /** Adds to the number of publications, and makes the messages due again after a delay. */
  const reschedule = async (messages: readonly OutboxMessage[], publications: number, delayMs: SQL): Promise<void> => {
    if (messages.length === 0) return;
    const ids = messages.map(({ id }) => id);
    await query(
      database
        .update(outbox)
        .set({ published: sql`${outbox.published} + ${publications}`, dueAt: sql`${now()} + ${delayMs}` })
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

    markPublished: (messages) => reschedule(messages, 1, REPEAT_MS),
    postpone: (messages) => reschedule(messages, 0, MAX_REPEAT_MS),

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
      const [[all], [unpublished]] = await query(
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
      const oldestMs = unpublished?.oldest == null ? 0 : Math.max(0, now() - unpublished.oldest.getTime());
      return { messages: all?.messages ?? 0, oldestMs, nextMs };
    },
  };
}
