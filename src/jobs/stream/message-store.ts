import * as z from "zod";
import { MESSAGE_KINDS } from "../../schemas/stream-protocol.ts";
import type { StoredMessage } from "./envelope.ts";

/** The tables of a job in its object's SQLite. The rules are the buffer's. */

export const CLOSED_STATES = ["cancelled", "expired"] as const;
export type ClosedState = (typeof CLOSED_STATES)[number];

/** How far a job has come. */
export interface Marks {
  lastSeq: number;
  sentUpTo: number;
  acknowledgedUpTo: number;
  touchedMs: number;
  closed: ClosedState | undefined;
}

/** What is there of messages. */
export interface Kept {
  bytes: number;
  firstSeq: number | undefined;
  lastSeq: number;
  oldestMs: number | undefined;
  newestMs: number;
}

const SCHEMA = `
  CREATE TABLE message (
    seq INTEGER PRIMARY KEY, type TEXT NOT NULL, ts_ms INTEGER NOT NULL, final INTEGER NOT NULL, bytes INTEGER NOT NULL,
    data TEXT NOT NULL
  );
  CREATE TABLE idempotency (seq INTEGER PRIMARY KEY, key TEXT NOT NULL UNIQUE, ts_ms INTEGER NOT NULL);
  CREATE TABLE stream (
    id INTEGER PRIMARY KEY CHECK (id = 1), last_seq INTEGER NOT NULL, sent INTEGER NOT NULL, acknowledged INTEGER NOT NULL,
    touched_ms INTEGER NOT NULL, closed TEXT
  );
  INSERT INTO stream (id, last_seq, sent, acknowledged, touched_ms) VALUES (1, 0, 0, 0, 0);
`;

const StreamRow = z
  .object({
    last_seq: z.int(),
    sent: z.int(),
    acknowledged: z.int(),
    touched_ms: z.number(),
    closed: z.enum(CLOSED_STATES).nullable(),
  })
  .transform(
    (row): Marks => ({
      lastSeq: row.last_seq,
      sentUpTo: row.sent,
      acknowledgedUpTo: row.acknowledged,
      touchedMs: row.touched_ms,
      closed: row.closed ?? undefined,
    }),
  );

const KeptRow = z
  .object({
    bytes: z.int(),
    first: z.int().nullable(),
    last: z.int(),
    oldest_ms: z.number().nullable(),
    newest_ms: z.number(),
  })
  .transform(
    (row): Kept => ({
      bytes: row.bytes,
      firstSeq: row.first ?? undefined,
      lastSeq: row.last,
      oldestMs: row.oldest_ms ?? undefined,
      newestMs: row.newest_ms,
    }),
  );

const MessageRow = z
  .object({
    seq: z.int(),
    type: z.enum(MESSAGE_KINDS).exclude(["gap"]),
    ts_ms: z.number(),
    final: z.int(),
    bytes: z.int(),
    data: z.string(),
  })
  .transform(({ ts_ms, final, ...row }): StoredMessage => ({ ...row, tsMs: ts_ms, final: final === 1 }));

const AgeRow = z.object({ seq: z.int(), ts_ms: z.number() }).transform(({ seq, ts_ms }) => ({ seq, tsMs: ts_ms }));
const SizeRow = z
  .object({ seq: z.int(), ts_ms: z.number(), bytes: z.int() })
  .transform(({ ts_ms, ...row }) => ({ ...row, tsMs: ts_ms }));
export type Age = z.output<typeof AgeRow>;
export type Size = z.output<typeof SizeRow>;

const SIZES_AT_ONCE = 16;

/** Every query is read to its end at once: one that is left half read would keep its place in the database. */
export class MessageStore {
  readonly #sql: SqlStorage;

  constructor(sql: SqlStorage) {
    this.#sql = sql;
  }

  get exist(): boolean {
    return this.#sql.exec("SELECT 1 FROM sqlite_master WHERE name = 'stream'").toArray().length > 0;
  }

  create(): void {
    this.#sql.exec(SCHEMA);
  }

  marks(): Marks {
    const rows = this.#sql.exec("SELECT last_seq, sent, acknowledged, touched_ms, closed FROM stream");
    return StreamRow.parse(rows.one());
  }

  setMarks({ lastSeq, sentUpTo, acknowledgedUpTo, touchedMs, closed }: Marks): void {
    this.#sql.exec(
      "UPDATE stream SET last_seq = ?, sent = ?, acknowledged = ?, touched_ms = ?, closed = ?",
      lastSeq,
      sentUpTo,
      acknowledgedUpTo,
      touchedMs,
      closed ?? null,
    );
  }

  kept(): Kept {
    const rows = this.#sql.exec(
      `SELECT ifnull(sum(bytes), 0) AS bytes, min(seq) AS first, ifnull(max(seq), 0) AS last,
         min(ts_ms) AS oldest_ms, ifnull(max(ts_ms), 0) AS newest_ms FROM message`,
    );
    return KeptRow.parse(rows.one());
  }

  insert({ seq, type, tsMs, final, bytes, data }: StoredMessage): void {
    this.#sql.exec(
      "INSERT INTO message (seq, type, ts_ms, final, bytes, data) VALUES (?, ?, ?, ?, ?, ?)",
      seq,
      type,
      tsMs,
      final ? 1 : 0,
      bytes,
      data,
    );
  }

  /** Says how many bytes went. */
  deleteUpTo(seq: number): number {
    const rows = this.#sql.exec("DELETE FROM message WHERE seq <= ? RETURNING seq, ts_ms, bytes", seq).toArray();
    return rows.reduce((sum, row) => sum + SizeRow.parse(row).bytes, 0);
  }

  /** From the oldest after a number on, without their data. */
  *sizesAfter(seq: number): Generator<Size> {
    for (let from = seq; ; ) {
      const rows = this.#sql
        .exec("SELECT seq, ts_ms, bytes FROM message WHERE seq > ? ORDER BY seq LIMIT ?", from, SIZES_AT_ONCE)
        .toArray();
      for (const row of rows) {
        const size = SizeRow.parse(row);
        yield size;
        from = size.seq;
      }
      if (rows.length < SIZES_AT_ONCE) return;
    }
  }

  between(afterSeq: number, upToSeq: number): StoredMessage[] {
    const rows = this.#sql.exec(
      "SELECT seq, type, ts_ms, final, bytes, data FROM message WHERE seq > ? AND seq <= ? ORDER BY seq",
      afterSeq,
      upToSeq,
    );
    return rows.toArray().map((row) => MessageRow.parse(row));
  }

  findKey(key: string): Age | undefined {
    const rows = this.#sql.exec("SELECT seq, ts_ms FROM idempotency WHERE key = ?", key).toArray();
    return rows[0] === undefined ? undefined : AgeRow.parse(rows[0]);
  }

  oldestKey(): Age | undefined {
    const rows = this.#sql.exec("SELECT seq, ts_ms FROM idempotency ORDER BY seq LIMIT 1").toArray();
    return rows[0] === undefined ? undefined : AgeRow.parse(rows[0]);
  }

  insertKey(key: string, { seq, tsMs }: Age): void {
    this.#sql.exec("INSERT INTO idempotency (seq, key, ts_ms) VALUES (?, ?, ?)", seq, key, tsMs);
  }

  deleteKey(seq: number): void {
    this.#sql.exec("DELETE FROM idempotency WHERE seq = ?", seq);
  }
}
