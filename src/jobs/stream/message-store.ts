import * as z from "zod";
import { asJsonText } from "../../lib/encoding.ts";
import { MESSAGE_KINDS } from "../../schemas/stream-protocol.ts";
import type { StoredMessage } from "./envelope.ts";

/** A job's tables in the SQLite of its Durable Object. `MessageBuffer` implements the rules. */

export const CLOSED_STATES = ["cancelled", "expired"] as const;
export type ClosedState = (typeof CLOSED_STATES)[number];

/** The row of the table `stream`. */
export interface StreamRecord {
  lastSeq: number;
  sentUpTo: number;
  acknowledgedUpTo: number;
  lastActiveMs: number;
  closed: ClosedState | undefined;
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
    (row): StreamRecord => ({
      lastSeq: row.last_seq,
      sentUpTo: row.sent,
      acknowledgedUpTo: row.acknowledged,
      lastActiveMs: row.touched_ms,
      closed: row.closed ?? undefined,
    }),
  );

const MessageRow = z
  .object({
    seq: z.int(),
    type: z.enum(MESSAGE_KINDS).exclude(["gap"]),
    ts_ms: z.number(),
    final: z.int(),
    bytes: z.int(),
    data: z.string().transform(asJsonText),
  })
  .transform(({ ts_ms, final, ...row }): StoredMessage => ({ ...row, tsMs: ts_ms, final: final === 1 }));

const KeyRow = z.object({ seq: z.int(), ts_ms: z.number() }).transform(({ seq, ts_ms }) => ({ seq, tsMs: ts_ms }));
const SizeRow = z
  .object({ seq: z.int(), ts_ms: z.number(), bytes: z.int() })
  .transform(({ ts_ms, ...row }) => ({ ...row, tsMs: ts_ms }));
/** The message that an idempotency key was first used for. */
export type KeyRecord = z.output<typeof KeyRow>;
export type MessageSize = z.output<typeof SizeRow>;

/** Reads every query to its end at once: a cursor that is only half read stays open in the database. */
export class MessageStore {
  readonly #sql: SqlStorage;

  constructor(sql: SqlStorage) {
    this.#sql = sql;
  }

  get hasTables(): boolean {
    return this.#sql.exec("SELECT 1 FROM sqlite_master WHERE name = 'stream'").toArray().length > 0;
  }

  createTables(): void {
    this.#sql.exec(SCHEMA);
  }

  readStream(): StreamRecord {
    const rows = this.#sql.exec("SELECT last_seq, sent, acknowledged, touched_ms, closed FROM stream");
    return StreamRow.parse(rows.one());
  }

  writeStream({ lastSeq, sentUpTo, acknowledgedUpTo, lastActiveMs, closed }: StreamRecord): void {
    this.#sql.exec(
      "UPDATE stream SET last_seq = ?, sent = ?, acknowledged = ?, touched_ms = ?, closed = ?",
      lastSeq,
      sentUpTo,
      acknowledgedUpTo,
      lastActiveMs,
      closed ?? null,
    );
  }

  /** Returns all messages without their data, oldest first. */
  sizes(): MessageSize[] {
    const rows = this.#sql.exec("SELECT seq, ts_ms, bytes FROM message ORDER BY seq");
    return rows.toArray().map((row) => SizeRow.parse(row));
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

  deleteUpTo(seq: number): void {
    this.#sql.exec("DELETE FROM message WHERE seq <= ?", seq);
  }

  between(afterSeq: number, upToSeq: number): StoredMessage[] {
    const rows = this.#sql.exec(
      "SELECT seq, type, ts_ms, final, bytes, data FROM message WHERE seq > ? AND seq <= ? ORDER BY seq",
      afterSeq,
      upToSeq,
    );
    return rows.toArray().map((row) => MessageRow.parse(row));
  }

  findKey(key: string): KeyRecord | undefined {
    const rows = this.#sql.exec("SELECT seq, ts_ms FROM idempotency WHERE key = ?", key).toArray();
    return rows[0] === undefined ? undefined : KeyRow.parse(rows[0]);
  }

  oldestKey(): KeyRecord | undefined {
    const rows = this.#sql.exec("SELECT seq, ts_ms FROM idempotency ORDER BY seq LIMIT 1").toArray();
    return rows[0] === undefined ? undefined : KeyRow.parse(rows[0]);
  }

  insertKey(key: string, { seq, tsMs }: KeyRecord): void {
    this.#sql.exec("INSERT INTO idempotency (seq, key, ts_ms) VALUES (?, ?, ?)", seq, key, tsMs);
  }

  deleteKey(seq: number): void {
    this.#sql.exec("DELETE FROM idempotency WHERE seq = ?", seq);
  }
}

export interface KeyLimits {
  retentionMs: number;
  /** How many of the latest messages keep their keys. */
  keys: number;
}

/** Remembers which message an idempotency key was first used for. Numbers and times increase together, so the oldest keys expire first. */
export class IdempotencyKeys {
  readonly #store: MessageStore;
  readonly #limits: KeyLimits;
  readonly #now: () => number;

  constructor(store: MessageStore, limits: KeyLimits, now: () => number) {
    this.#store = store;
    this.#limits = limits;
    this.#now = now;
  }

  seqOf(key: string, lastSeq: number): number | undefined {
    const found = this.#store.findKey(key);
    return found === undefined || this.#hasExpired(found, lastSeq) ? undefined : found.seq;
  }

  /** Stores a key and deletes expired ones. */
  remember(key: string, record: KeyRecord): void {
    for (let oldest = this.#store.oldestKey(); oldest !== undefined; oldest = this.#store.oldestKey()) {
      if (!this.#hasExpired(oldest, record.seq)) break;
      this.#store.deleteKey(oldest.seq);
    }
    this.#store.insertKey(key, record);
  }

  #hasExpired({ seq, tsMs }: KeyRecord, lastSeq: number): boolean {
    return tsMs + this.#limits.retentionMs <= this.#now() || seq <= lastSeq - this.#limits.keys;
  }
}
