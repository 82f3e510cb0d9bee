import * as z from "zod";
import { countValues } from "../samples.ts";
import type { AgentSample } from "../store/telemetry-store.ts";
import { pieces } from "./sample-pieces.ts";

/**
 * Holds acknowledged samples in the shard's SQLite until the telemetry store has them. A row holds the samples of one or more calls, in the
 * order of their arrival. Rows leave in the same order, one range at a time.
 *
 * The range is stored, with its token, before its samples go to the telemetry store. After a crash the shard sends exactly the same samples
 * with the same token again, so the store can drop what it already has.
 */
export interface JournalOptions {
  storage: Pick<DurableObjectStorage, "sql" | "transactionSync">;
  /** Characters of JSON in the whole journal. Beyond it, the shard refuses samples. */
  maxLength: number;
  /** Characters of JSON in one row. */
  maxRowLength: number;
  /** Characters of JSON whose samples stay in memory. The others are read from SQLite again. */
  maxCachedLength: number;
  /** Whether rows stay in SQLite until `checkpoint`, also if the telemetry store has them. They can be replayed after a restart. */
  isReplayed?: boolean;
  /** Called before the contents of rows change. */
  onRewrite?: () => void;
}

/** The rows that go to the telemetry store next. */
export interface JournalRange {
  /** The number of the last row. The range begins at the first row that exists. */
  last: number;
  /** Random, and never used for other samples. */
  token: string;
  /** When the range was decided. */
  atMs: number;
}

export interface JournalRow {
  seq: number;
  samples: AgentSample[];
}

/** Samples, and their JSON texts, separated by commas. */
export interface SerializedSamples {
  text: string;
  samples: AgentSample[];
}

interface RowInfo {
  length: number;
  count: number;
  apIds: ReadonlySet<string>;
  /** The time of the oldest sample with values. */
  oldestMs: number;
}

/**
 * The number of a row is never used again: `flush` keeps the number of the last row that was deleted. `ended` has the number of the last
 * row that the telemetry store has.
 */
const SCHEMA = `
  CREATE TABLE IF NOT EXISTS journal (seq INTEGER PRIMARY KEY, samples TEXT NOT NULL);
  CREATE TABLE IF NOT EXISTS ended (id INTEGER PRIMARY KEY CHECK (id = 1), last INTEGER NOT NULL);
  CREATE TABLE IF NOT EXISTS flush (
    id INTEGER PRIMARY KEY CHECK (id = 1), last INTEGER NOT NULL, token TEXT NOT NULL, at_ms INTEGER NOT NULL
  );
`;

const StoredRow = z.object({ seq: z.int(), samples: z.string() });
const StoredEnd = z.object({ last: z.int() });
const StoredRange = z
  .object({ last: z.int(), token: z.string(), at_ms: z.number() })
  .transform(({ at_ms, ...range }): JournalRange => ({ ...range, atMs: at_ms }));

/** Rows that are read from SQLite at once when the journal is opened. */
const ROWS_PER_QUERY = 16;

export class Journal {
  readonly #options: JournalOptions;
  readonly #sql: SqlStorage;
  /** All rows, in their order. */
  readonly #rows = new Map<number, RowInfo>();
  /** The rows with samples of an agent. */
  readonly #rowsOf = new Map<string, Set<number>>();
  /** The samples of some rows, up to a limit. */
  readonly #cache = new Map<number, AgentSample[]>();
  #cachedLength = 0;
  #length = 0;
  #count = 0;
  #lastSeq: number;
  #range: JournalRange | undefined;
  /** The telemetry store has the rows up to this one. */
  #ended: number;
  /** No replay needs the rows up to this one. */
  #checkpoint: number;

  constructor(options: JournalOptions) {
    this.#options = options;
    this.#sql = options.storage.sql;
    this.#sql.exec(SCHEMA);
    this.#range = this.#sql
      .exec("SELECT last, token, at_ms FROM flush")
      .toArray()
      .map((row) => StoredRange.parse(row))[0];
    this.#lastSeq = this.#range?.last ?? 0;
    this.#ended =
      this.#sql
        .exec("SELECT last FROM ended")
        .toArray()
        .map((row) => StoredEnd.parse(row).last)[0] ?? 0;
    this.#checkpoint = options.isReplayed ? 0 : Number.POSITIVE_INFINITY;
    for (const { seq, text } of this.#readAfter(this.#ended)) this.#register(seq, text.length, parseSamples(text));
  }

  /** The number of samples in the journal. */
  get count(): number {
    return this.#count;
  }

  /** Characters of JSON in the journal. */
  get length(): number {
    return this.#length;
  }

  get isEmpty(): boolean {
    return this.#rows.size === 0;
  }

  /** The number of the first row, or infinity if there is none. */
  get firstSeq(): number {
    const [first = Number.POSITIVE_INFINITY] = this.#rows.keys();
    return first;
  }

  /** The number of the last row that was ever stored. */
  get lastSeq(): number {
    return this.#lastSeq;
  }

  /** The range that is on its way to the telemetry store. */
  get range(): JournalRange | undefined {
    return this.#range !== undefined && this.firstSeq <= this.#range.last ? this.#range : undefined;
  }

  /** The time of the oldest sample with values, or infinity if there is none. */
  get oldestMs(): number {
    let oldestMs = Number.POSITIVE_INFINITY;
    for (const row of this.#rows.values()) oldestMs = Math.min(oldestMs, row.oldestMs);
    return oldestMs;
  }

  hasRoomFor(length: number): boolean {
    return this.#length + length <= this.#options.maxLength;
  }

  /** Returns whether samples with this text are stored in one row, each in one piece. */
  fitsInRow(text: string): boolean {
    return text.length <= this.#options.maxRowLength;
  }

  /** Returns whether the journal has samples of the agent. */
  has(apId: string): boolean {
    return this.#rowsOf.has(apId);
  }

  /**
   * Stores samples. They are durable when the object sends its next response. Returns the new rows. A long sample is in pieces.
   * @param text the samples as JSON, separated by commas
   * @param alongside writes more in the same transaction
   */
  append(text: string, samples: AgentSample[], alongside: () => void = () => {}): JournalRow[] {
    const parts = this.fitsInRow(text) ? [{ text, samples }] : this.#split(samples);
    const rows = parts.map((part, i) => ({ seq: this.#lastSeq + 1 + i, ...part }));
    this.#options.storage.transactionSync(() => {
      for (const { seq, text } of rows) this.#sql.exec("INSERT INTO journal (seq, samples) VALUES (?, ?)", seq, text);
      alongside();
    });
    for (const { seq, text, samples } of rows) this.#register(seq, text.length, samples);
    return rows;
  }

  /** Returns the samples of a row. */
  read(seq: number): AgentSample[] {
    const cached = this.#cache.get(seq);
    if (cached !== undefined) return cached;
    const row = this.#sql.exec("SELECT seq, samples FROM journal WHERE seq = ?", seq).one();
    return parseSamples(StoredRow.parse(row).samples);
  }

  /** Yields all rows in their order. */
  *rows(): Generator<JournalRow> {
    for (const seq of this.#rows.keys()) yield { seq, samples: this.read(seq) };
  }

  /** Yields all samples since the last checkpoint, also those that the telemetry store has. A long sample is in pieces. */
  *replay(): Generator<AgentSample> {
    for (const { text } of this.#readAfter(0)) yield* parseSamples(text);
  }

  /** Ends the need to replay what the journal has now. */
  checkpoint(): void {
    if (!this.#options.isReplayed) return;
    this.#checkpoint = this.#lastSeq;
    this.#delete();
  }

  /** Returns the agent's samples in the order of their arrival. */
  samplesOf(apId: string): AgentSample[] {
    return [...(this.#rowsOf.get(apId) ?? [])].flatMap((seq) =>
      this.read(seq).filter((sample) => sample.apId === apId),
    );
  }

  /** Returns the first rows, up to limits of samples and characters, but at least one. */
  next(maxSamples: number, maxLength: number): JournalRow[] {
    const rows: JournalRow[] = [];
    let [samples, characters] = [0, 0];
    for (const [seq, { count, length }] of this.#rows) {
      if (rows.length > 0 && (samples + count > maxSamples || characters + length > maxLength)) break;
      rows.push({ seq, samples: this.read(seq) });
      samples += count;
      characters += length;
    }
    return rows;
  }

  /** Returns the rows of the range that is on its way. */
  rowsOf({ last }: JournalRange): JournalRow[] {
    return [...this.#rows.keys()].filter((seq) => seq <= last).map((seq) => ({ seq, samples: this.read(seq) }));
  }

  /** Stores a range, and new contents of some of its rows: fewer values, but the same samples. */
  begin(range: JournalRange, changed: readonly JournalRow[]): void {
    const rows = changed.map((row) => ({ ...row, text: toText(row.samples) }));
    if (rows.length > 0) this.#options.onRewrite?.();
    this.#options.storage.transactionSync(() => {
      for (const { seq, text } of rows) this.#sql.exec("UPDATE journal SET samples = ? WHERE seq = ?", text, seq);
      this.#sql.exec(
        "INSERT OR REPLACE INTO flush (id, last, token, at_ms) VALUES (1, ?, ?, ?)",
        range.last,
        range.token,
        range.atMs,
      );
    });
    this.#range = range;
    for (const { seq, samples, text } of rows) this.#update(seq, text.length, samples);
  }

  /** Deletes the rows of a range, unless a replay may need them. */
  end({ last }: JournalRange): void {
    this.#ended = last;
    if (this.#options.isReplayed) this.#sql.exec("INSERT OR REPLACE INTO ended (id, last) VALUES (1, ?)", last);
    this.#delete();
    for (const seq of this.#rows.keys()) {
      if (seq > last) return;
      this.#forget(seq);
    }
  }

  #delete(): void {
    this.#sql.exec("DELETE FROM journal WHERE seq <= ?", Math.min(this.#ended, this.#checkpoint));
  }

  *#readAfter(last: number): Generator<{ seq: number; text: string }> {
    for (let after = last; ; ) {
      const rows = this.#sql
        .exec("SELECT seq, samples FROM journal WHERE seq > ? ORDER BY seq LIMIT ?", after, ROWS_PER_QUERY)
        .toArray()
        .map((row) => StoredRow.parse(row));
      for (const { seq, samples } of rows) {
        yield { seq, text: samples };
        after = seq;
      }
      if (rows.length < ROWS_PER_QUERY) return;
    }
  }

  /** Divides samples into rows. A sample that is too long becomes several samples of the same time. */
  #split(samples: readonly AgentSample[]): SerializedSamples[] {
    const rows: SerializedSamples[] = [];
    for (const sample of samples) {
      for (const piece of pieces(sample, this.#options.maxRowLength)) {
        const row = rows.at(-1);
        if (row === undefined || row.text.length + 1 + piece.text.length > this.#options.maxRowLength) {
          rows.push({ text: piece.text, samples: [piece.sample] });
          continue;
        }
        row.text += `,${piece.text}`;
        row.samples.push(piece.sample);
      }
    }
    return rows;
  }

  #register(seq: number, length: number, samples: AgentSample[]): void {
    this.#lastSeq = Math.max(this.#lastSeq, seq);
    const apIds = new Set(samples.map(({ apId }) => apId));
    const oldestMs = samples.reduce(
      (oldest, sample) => (countValues(sample) > 0 ? Math.min(oldest, sample.tsMs) : oldest),
      Number.POSITIVE_INFINITY,
    );
    this.#rows.set(seq, { length, count: samples.length, apIds, oldestMs });
    this.#length += length;
    this.#count += samples.length;
    for (const apId of apIds) {
      const rows = this.#rowsOf.get(apId);
      if (rows === undefined) this.#rowsOf.set(apId, new Set([seq]));
      else rows.add(seq);
    }
    if (this.#cachedLength + length > this.#options.maxCachedLength) return;
    this.#cache.set(seq, samples);
    this.#cachedLength += length;
  }

  #update(seq: number, length: number, samples: AgentSample[]): void {
    const row = this.#rows.get(seq);
    if (row === undefined) return;
    this.#length += length - row.length;
    if (this.#cache.has(seq)) {
      this.#cache.set(seq, samples);
      this.#cachedLength += length - row.length;
    }
    row.length = length;
  }

  #forget(seq: number): void {
    const row = this.#rows.get(seq);
    if (row === undefined) return;
    this.#rows.delete(seq);
    this.#length -= row.length;
    this.#count -= row.count;
    if (this.#cache.delete(seq)) this.#cachedLength -= row.length;
    for (const apId of row.apIds) {
      const rows = this.#rowsOf.get(apId);
      rows?.delete(seq);
      if (rows?.size === 0) this.#rowsOf.delete(apId);
    }
  }
}

/** The text is the shard's own, or a Worker's of this project. */
export const parseSamples = (text: string): AgentSample[] => JSON.parse(`[${text}]`) as AgentSample[];

const toText = (samples: readonly AgentSample[]): string => JSON.stringify(samples).slice(1, -1);
