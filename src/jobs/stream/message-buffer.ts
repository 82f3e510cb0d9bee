import type { JsonText } from "../../lib/encoding.ts";
import { MAX_IDEMPOTENCY_KEY_LENGTH } from "../../schemas/job.ts";
import type { StoredKind } from "../../schemas/stream-protocol.ts";
import type { Gap, StoredMessage } from "./envelope.ts";
import {
  type ClosedState,
  IdempotencyKeys,
  type KeyLimits,
  type MessageSize,
  MessageStore,
  type StreamRecord,
} from "./message-store.ts";

export interface BufferLimits extends KeyLimits {
  messages: number;
  bytes: number;
}

/** Cloudflare rejects rows over 2 MB; a local workerd does not. A callback has at most 1 MiB, but an encoded command result may grow. */
export const MAX_DATA_BYTES = 1_900_000;

/** Limits of a page, which is in memory as a whole. */
const PAGE_MESSAGES = 64;
const PAGE_BYTES = 1024 * 1024;

/** Up to this size, the newest messages also stay in memory: most messages are sent immediately. */
const MAX_NEWEST_BYTES = 64 * 1024;

/** A reader may connect and make room at any moment, so no caller waits longer than this. */
const MAX_RETRY_AFTER_S = 60;

export interface NewMessage {
  type: StoredKind;
  data: JsonText;
  final?: boolean | undefined;
  /** Idempotency key: of several messages with the same key, only the first is stored. */
  key?: string | undefined;
}

export type Appended =
  | { outcome: "stored"; seq: number }
  | { outcome: "full"; retryAfterS: number }
  | { outcome: "closed"; state: ClosedState }
  | { outcome: "too_large" };

export interface BufferOptions {
  storage: Pick<DurableObjectStorage, "sql" | "transactionSync">;
  limits: BufferLimits;
  now: () => number;
}

interface State extends StreamRecord {
  droppedUpTo: number;
  bytes: number;
  /** The stored messages without their data, oldest first. */
  stored: readonly MessageSize[];
}

const EMPTY: State = {
  lastSeq: 0,
  sentUpTo: 0,
  acknowledgedUpTo: 0,
  lastActiveMs: 0,
  closed: undefined,
  droppedUpTo: 0,
  bytes: 0,
  stored: [],
};

/**
 * Holds a job's unacknowledged messages in the SQLite of its object. Drops the oldest messages first: those that were acknowledged, have
 * expired, or must make room.
 *
 *     1 … droppedUpTo | droppedUpTo + 1 … lastSeq    dropped, stored
 *     1 … acknowledgedUpTo ≤ sentUpTo ≤ lastSeq      a reader has them, a socket was sent them
 *
 * So the messages that were dropped unread are always one range: those between `acknowledgedUpTo` and `droppedUpTo`.
 */
export class MessageBuffer {
  readonly #options: BufferOptions;
  readonly #store: MessageStore;
  readonly #keys: IdempotencyKeys;
  /** The tables' content, once read. */
  #cached: State | undefined;
  /** The first write creates the tables, so that an object that was only read leaves no storage behind. */
  #hasTables = false;
  /** The last messages, to send them without reading them. */
  #newest: StoredMessage[] = [];

  constructor(options: BufferOptions) {
    this.#options = options;
    this.#store = new MessageStore(options.storage.sql);
    this.#keys = new IdempotencyKeys(this.#store, options.limits, options.now);
  }

  /** Whether nothing has ever been stored. */
  get isEmpty(): boolean {
    return this.#state === EMPTY;
  }

  get lastSeq(): number {
    return this.#state.lastSeq;
  }

  get sentUpTo(): number {
    return this.#state.sentUpTo;
  }

  get acknowledgedUpTo(): number {
    return this.#state.acknowledgedUpTo;
  }

  get messages(): number {
    return this.#state.stored.length;
  }

  get bytes(): number {
    return this.#state.bytes;
  }

  /** When the last message arrived or a reader was last connected, as far as recorded. */
  get lastActiveMs(): number {
    return this.#state.lastActiveMs;
  }

  get closed(): ClosedState | undefined {
    return this.#state.closed;
  }

  /** When the oldest message expires; infinity if there is none. */
  get nextExpiryMs(): number {
    return (this.#state.stored[0]?.tsMs ?? Number.POSITIVE_INFINITY) + this.#options.limits.retentionMs;
  }

  /** What can be appended before the buffer drops or rejects messages. */
  get room(): { messages: number; bytes: number } {
    const { messages, bytes } = this.#options.limits;
    return { messages: messages - this.messages, bytes: bytes - this.bytes };
  }

  /** Whether all these messages can be appended. */
  hasRoomFor(messages: readonly Pick<NewMessage, "data">[]): boolean {
    this.expire();
    const bytes = messages.reduce((sum, { data }) => sum + new TextEncoder().encode(data).byteLength, 0);
    return this.#roomFor(bytes, messages.length) !== undefined;
  }

  append({ type, data, final = false, key }: NewMessage): Appended {
    const bytes = new TextEncoder().encode(data).byteLength;
    if (bytes > MAX_DATA_BYTES || (key?.length ?? 0) > MAX_IDEMPOTENCY_KEY_LENGTH) return { outcome: "too_large" };
    this.expire();
    const first = key === undefined || this.isEmpty ? undefined : this.#keys.seqOf(key, this.lastSeq);
    if (first !== undefined) return { outcome: "stored", seq: first };
    const { closed, lastSeq, lastActiveMs } = this.#state;
    if (closed !== undefined) return { outcome: "closed", state: closed };
    const dropUpTo = this.#roomFor(bytes);
    if (dropUpTo === undefined) return { outcome: "full", retryAfterS: this.#retryAfterS() };

    const seq = lastSeq + 1;
    // Not before the last message, even if the clock was set back: messages must expire in order.
    const tsMs = Math.max(this.#options.now(), lastActiveMs);
    const message: StoredMessage = { seq, type, tsMs, final, bytes, data };
    const insert = (state: State): State => {
      this.#store.insert(message);
      const stored = [...state.stored, { seq, tsMs, bytes }];
      // The row has the number and the time, so the table `stream` needs no write.
      return { ...state, lastSeq: seq, lastActiveMs: tsMs, bytes: state.bytes + bytes, stored };
    };
    // One statement needs no transaction, which would be two more statements.
    if (this.#hasTables && dropUpTo === 0 && key === undefined) this.#cached = insert(this.#state);
    else
      this.#write((state) => {
        if (key !== undefined) this.#keys.remember(key, { seq, tsMs });
        return insert(this.#drop(state, dropUpTo));
      });
    this.#keep(message);
    return { outcome: "stored", seq };
  }

  /** Returns the next messages after a number; empty if there are no more. */
  page(afterSeq: number): StoredMessage[] {
    if (afterSeq >= this.lastSeq) return [];
    const { stored, droppedUpTo } = this.#state;
    const from = this.#newest.findIndex(({ seq }) => seq === afterSeq + 1);
    if (from !== -1 && afterSeq >= droppedUpTo) return this.#newest.slice(from);
    let [upTo, bytes] = [afterSeq, 0];
    const first = stored.findIndex(({ seq }) => seq > afterSeq);
    for (const size of stored.slice(first, first + PAGE_MESSAGES)) {
      upTo = size.seq;
      bytes += size.bytes;
      if (bytes >= PAGE_BYTES) break;
    }
    return this.#store.between(afterSeq, upTo);
  }

  /** Returns the messages that a reader who has everything up to `seq` will never get. */
  gapAfter(seq: number): Gap | undefined {
    const { droppedUpTo } = this.#state;
    return droppedUpTo > seq ? { fromSeq: seq + 1, toSeq: droppedUpTo } : undefined;
  }

  /** Records that a socket was sent everything up to a number. These messages can now be acknowledged, or dropped to make room. */
  markSent(upTo: number): void {
    const sentUpTo = Math.min(upTo, this.lastSeq);
    if (sentUpTo > this.sentUpTo) this.#update({ sentUpTo });
  }

  /**
   * Acknowledges for the job as a whole, at most up to the last message that was sent to a socket. Keeps messages after `neededAfter`
   * until they are released: some socket has not been sent them yet.
   */
  acknowledge(seq: number, neededAfter = Number.POSITIVE_INFINITY): void {
    const acknowledgedUpTo = Math.min(seq, this.sentUpTo);
    if (acknowledgedUpTo > this.acknowledgedUpTo) this.#update({ acknowledgedUpTo });
    this.release(neededAfter);
  }

  /** Drops acknowledged messages up to `neededAfter`. */
  release(neededAfter: number): void {
    const upTo = Math.min(this.acknowledgedUpTo, neededAfter);
    if (upTo > this.#state.droppedUpTo) this.#write((state) => this.#drop(state, upTo));
  }

  /** Drops expired messages. */
  expire(): void {
    if (this.nextExpiryMs > this.#options.now()) return;
    const isExpired = ({ tsMs }: MessageSize) => tsMs + this.#options.limits.retentionMs <= this.#options.now();
    const upTo = this.#state.stored.findLast(isExpired)?.seq ?? 0;
    this.#write((state) => this.#drop(state, upTo));
  }

  /** Records that a reader is connected, or was until now. Writes nothing if the job never had a message. */
  recordActivity(): void {
    const lastActiveMs = this.#options.now();
    if (!this.isEmpty && lastActiveMs > this.lastActiveMs) this.#update({ lastActiveMs });
  }

  /** Rejects further messages. The first reason wins. */
  close(closed: ClosedState): void {
    if (this.closed !== undefined) return;
    const lastActiveMs = Math.max(this.#options.now(), this.lastActiveMs);
    this.#write((state) => this.#writeStream({ ...state, closed, lastActiveMs }));
  }

  /** Resets the memory. To be called after the object's storage was deleted. */
  forget(): void {
    this.#cached = undefined;
    this.#hasTables = false;
    this.#newest = [];
  }

  get #state(): State {
    this.#cached ??= this.#read();
    return this.#cached;
  }

  #read(): State {
    this.#hasTables = this.#store.hasTables;
    if (!this.#hasTables) return EMPTY;
    const [stream, stored] = [this.#store.readStream(), this.#store.sizes()];
    const [first, last] = [stored[0], stored.at(-1)];
    const lastSeq = Math.max(stream.lastSeq, last?.seq ?? 0);
    return {
      ...stream,
      lastSeq,
      lastActiveMs: Math.max(stream.lastActiveMs, last?.tsMs ?? 0),
      droppedUpTo: first === undefined ? lastSeq : first.seq - 1,
      bytes: stored.reduce((sum, { bytes }) => sum + bytes, 0),
      stored,
    };
  }

  #keep(message: StoredMessage): void {
    this.#newest.push(message);
    let bytes = this.#newest.reduce((sum, kept) => sum + kept.bytes, 0);
    while (bytes > MAX_NEWEST_BYTES || this.#newest.length > PAGE_MESSAGES) bytes -= this.#newest.shift()?.bytes ?? 0;
  }

  /** Applies a change atomically. Updates the memory only if the tables were written. */
  #write(change: (state: State) => State): void {
    const state = this.#state;
    this.#cached = this.#options.storage.transactionSync(() => {
      if (!this.#hasTables) this.#store.createTables();
      return change(state);
    });
    this.#hasTables = true;
  }

  /** Updates the table `stream`, which must exist. One statement needs no transaction. */
  #update(change: Partial<StreamRecord>): void {
    this.#cached = this.#writeStream({ ...this.#state, ...change });
  }

  #writeStream(state: State): State {
    this.#store.writeStream(state);
    return state;
  }

  #drop(state: State, upTo: number): State {
    if (upTo <= state.droppedUpTo) return state;
    this.#store.deleteUpTo(upTo);
    const kept = state.stored.findIndex(({ seq }) => seq > upTo);
    const stored = kept === -1 ? [] : state.stored.slice(kept);
    const bytes = stored.reduce((sum, size) => sum + size.bytes, 0);
    const next = { ...state, droppedUpTo: upTo, bytes, stored };
    // The last row holds the last number. Record it if that row was deleted.
    return stored.length === 0 ? this.#writeStream(next) : next;
  }

  /** Returns the number up to which to drop messages to make room, or undefined if that is not possible. */
  #roomFor(bytes: number, count = 1): number | undefined {
    const { limits } = this.#options;
    let [messages, totalBytes] = [this.messages + count, this.bytes + bytes];
    const fits = () => messages <= limits.messages && totalBytes <= limits.bytes;
    if (fits()) return 0;
    for (const size of this.#state.stored) {
      // No socket was sent it yet.
      if (size.seq > this.sentUpTo) return undefined;
      messages--;
      totalBytes -= size.bytes;
      if (fits()) return size.seq;
    }
    return undefined;
  }

  #retryAfterS(): number {
    const untilExpiryS = Math.ceil((this.nextExpiryMs - this.#options.now()) / 1000);
    return Math.max(1, Math.min(untilExpiryS, MAX_RETRY_AFTER_S));
  }
}
