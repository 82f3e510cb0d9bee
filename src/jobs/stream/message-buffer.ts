import type { StoredKind } from "../../schemas/stream-protocol.ts";
import type { Gap, StoredMessage } from "./envelope.ts";
import { IdempotencyKeys, type KeyLimits, MAX_KEY_LENGTH } from "./idempotency.ts";
import { type ClosedState, type Marks, MessageStore, type Size } from "./message-store.ts";

/**
 * The messages of a job that nobody has acknowledged yet, in the SQLite of its object. What is kept is always the newest of all:
 * messages go from the old end only, because they were acknowledged, because they are too old, or to make room.
 *
 *     1 … goneUpTo | goneUpTo + 1 … lastSeq        what went, what is kept
 *     1 … acknowledgedUpTo ≤ sentUpTo ≤ lastSeq    what a reader has, what a socket was sent
 *
 * So the messages that went unread are those between `acknowledgedUpTo` and `goneUpTo`: one range, at any time.
 */
export interface BufferLimits extends KeyLimits {
  messages: number;
  bytes: number;
}

/** A row of over 2 MB passes locally and fails in production. Bodies end at 1 MiB; this leaves room for one that was written anew. */
export const MAX_DATA_BYTES = 1_900_000;

/** A page is in memory as a whole. */
const PAGE_MESSAGES = 64;
const PAGE_BYTES = 1024 * 1024;

/** A message of up to this is kept in memory as well until the next one comes: most are sent at once. */
const MAX_NEWEST_BYTES = 64 * 1024;

/** Room comes when a reader does, which may be any moment: nobody is told to stay away for longer than this. */
const MAX_RETRY_AFTER_S = 60;

export interface NewMessage {
  type: StoredKind;
  /** JSON text; whoever posts it has made sure that it is. */
  data: string;
  final?: boolean | undefined;
  /** Of several messages with the same key, only the first is stored. */
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

interface State extends Marks {
  goneUpTo: number;
  bytes: number;
  /** When the oldest message that is kept was stored. */
  oldestMs: number | undefined;
}

const NOTHING: State = {
  lastSeq: 0,
  sentUpTo: 0,
  acknowledgedUpTo: 0,
  touchedMs: 0,
  closed: undefined,
  goneUpTo: 0,
  bytes: 0,
  oldestMs: undefined,
};

export class MessageBuffer {
  readonly #options: BufferOptions;
  readonly #tables: MessageStore;
  readonly #keys: IdempotencyKeys;
  /** What the tables say, once read. */
  #known: State | undefined;
  /** They are made by the first write: an object that was only asked for something leaves nothing behind. */
  #hasTables = false;
  /** The last message, so that it need not be read to be sent. */
  #newest: StoredMessage | undefined;

  constructor(options: BufferOptions) {
    this.#options = options;
    this.#tables = new MessageStore(options.storage.sql);
    this.#keys = new IdempotencyKeys(this.#tables, options.limits, options.now);
  }

  /** Whether nothing has ever been stored. */
  get isEmpty(): boolean {
    return this.#state === NOTHING;
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
    return this.#state.lastSeq - this.#state.goneUpTo;
  }

  get bytes(): number {
    return this.#state.bytes;
  }

  /** The last message, or the last time that somebody was there to read. */
  get touchedMs(): number {
    return this.#state.touchedMs;
  }

  get closed(): ClosedState | undefined {
    return this.#state.closed;
  }

  /** When the next message will be too old; never where nothing is kept. */
  get nextExpiryMs(): number {
    return (this.#state.oldestMs ?? Number.POSITIVE_INFINITY) + this.#options.limits.retentionMs;
  }

  /** What can be appended before anything that was not acknowledged has to go. */
  get room(): { messages: number; bytes: number } {
    const { messages, bytes } = this.#options.limits;
    return { messages: messages - this.messages, bytes: bytes - this.bytes };
  }

  /** Whether all of these can be appended. */
  hasRoomFor(messages: readonly Pick<NewMessage, "data">[]): boolean {
    this.expire();
    const bytes = messages.reduce((sum, { data }) => sum + new TextEncoder().encode(data).byteLength, 0);
    return this.#roomFor(bytes, messages.length) !== undefined;
  }

  append({ type, data, final = false, key }: NewMessage): Appended {
    const bytes = new TextEncoder().encode(data).byteLength;
    if (bytes > MAX_DATA_BYTES || (key?.length ?? 0) > MAX_KEY_LENGTH) return { outcome: "too_large" };
    this.expire();
    const first = key === undefined || this.isEmpty ? undefined : this.#keys.seqOf(key, this.lastSeq);
    if (first !== undefined) return { outcome: "stored", seq: first };
    const { closed, lastSeq, touchedMs } = this.#state;
    if (closed !== undefined) return { outcome: "closed", state: closed };
    const dropUpTo = this.#roomFor(bytes);
    if (dropUpTo === undefined) return { outcome: "full", retryAfterS: this.#retryAfterS() };

    const seq = lastSeq + 1;
    // Never before the last one, even if the clock was set back: messages expire in their order.
    const tsMs = Math.max(this.#options.now(), touchedMs);
    const message: StoredMessage = { seq, type, tsMs, final, bytes, data };
    this.#write((state) => {
      const rest = this.#drop(state, dropUpTo);
      this.#tables.insert(message);
      if (key !== undefined) this.#keys.remember(key, { seq, tsMs });
      // The row tells its number and its time: the marks need not be written for them.
      return { ...rest, lastSeq: seq, touchedMs: tsMs, bytes: rest.bytes + bytes, oldestMs: rest.oldestMs ?? tsMs };
    });
    this.#newest = bytes <= MAX_NEWEST_BYTES ? message : undefined;
    return { outcome: "stored", seq };
  }

  /** The next messages after a number, some at a time; none when there are no more. */
  page(afterSeq: number): StoredMessage[] {
    if (afterSeq >= this.lastSeq) return [];
    if (this.messages > 0 && this.#newest?.seq === afterSeq + 1) return [this.#newest];
    let [upTo, messages, bytes] = [afterSeq, 0, 0];
    for (const size of this.#tables.sizesAfter(afterSeq)) {
      upTo = size.seq;
      messages += 1;
      bytes += size.bytes;
      if (messages === PAGE_MESSAGES || bytes >= PAGE_BYTES) break;
    }
    return this.#tables.between(afterSeq, upTo);
  }

  /** What a reader who has everything up to a number will never get. */
  gapAfter(seq: number): Gap | undefined {
    const { goneUpTo } = this.#state;
    return goneUpTo > seq ? { fromSeq: seq + 1, toSeq: goneUpTo } : undefined;
  }

  /** Notes that some socket was sent everything up to a number: from now on it can be acknowledged, and go to make room. */
  markSent(upTo: number): void {
    const sentUpTo = Math.min(upTo, this.lastSeq);
    if (sentUpTo > this.sentUpTo) this.#remark({ sentUpTo });
  }

  /**
   * Acknowledges for the job as a whole. What no socket was ever sent cannot be acknowledged. Messages after `neededAfter` stay
   * until they are released: some socket is yet to be sent them.
   */
  acknowledge(seq: number, neededAfter = Number.POSITIVE_INFINITY): void {
    const acknowledgedUpTo = Math.min(seq, this.sentUpTo);
    if (acknowledgedUpTo > this.acknowledgedUpTo) this.#remark({ acknowledgedUpTo });
    this.release(neededAfter);
  }

  /** Lets go of what has been acknowledged and is not needed any more. */
  release(neededAfter: number): void {
    const upTo = Math.min(this.acknowledgedUpTo, neededAfter);
    if (upTo > this.#state.goneUpTo) this.#write((state) => this.#drop(state, upTo));
  }

  /** Lets go of what is too old. */
  expire(): void {
    if (this.nextExpiryMs > this.#options.now()) return;
    let upTo = 0;
    for (const { seq, tsMs } of this.#tables.sizesAfter(0)) {
      if (tsMs + this.#options.limits.retentionMs > this.#options.now()) break;
      upTo = seq;
    }
    this.#write((state) => this.#drop(state, upTo));
  }

  /** Somebody is there to read, or was until now. Not worth a note where there is nothing to be read. */
  touch(): void {
    const touchedMs = this.#options.now();
    if (!this.isEmpty && touchedMs > this.touchedMs) this.#remark({ touchedMs });
  }

  /** From now on nothing more is taken. The first reason stands. */
  close(closed: ClosedState): void {
    if (this.closed !== undefined) return;
    const touchedMs = Math.max(this.#options.now(), this.touchedMs);
    this.#write((state) => this.#mark({ ...state, closed, touchedMs }));
  }

  /** To be called when all storage of the object has been deleted. */
  forget(): void {
    this.#known = undefined;
    this.#hasTables = false;
    this.#newest = undefined;
  }

  get #state(): State {
    this.#known ??= this.#read();
    return this.#known;
  }

  #read(): State {
    this.#hasTables = this.#tables.exist;
    if (!this.#hasTables) return NOTHING;
    const [marks, kept] = [this.#tables.marks(), this.#tables.kept()];
    const lastSeq = Math.max(marks.lastSeq, kept.lastSeq);
    return {
      ...marks,
      lastSeq,
      touchedMs: Math.max(marks.touchedMs, kept.newestMs),
      goneUpTo: kept.firstSeq === undefined ? lastSeq : kept.firstSeq - 1,
      bytes: kept.bytes,
      oldestMs: kept.oldestMs,
    };
  }

  /** All of a change or nothing of it; memory has it only when the tables do. */
  #write(change: (state: State) => State): void {
    const state = this.#state;
    this.#known = this.#options.storage.transactionSync(() => {
      if (!this.#hasTables) this.#tables.create();
      return change(state);
    });
    this.#hasTables = true;
  }

  /** Changes marks of a job that has some. One statement, which needs no transaction around it. */
  #remark(marks: Partial<Marks>): void {
    this.#known = this.#mark({ ...this.#state, ...marks });
  }

  #mark(state: State): State {
    this.#tables.setMarks(state);
    return state;
  }

  #drop(state: State, upTo: number): State {
    if (upTo <= state.goneUpTo) return state;
    const freedBytes = this.#tables.deleteUpTo(upTo);
    const [oldest] = this.#tables.sizesAfter(upTo);
    // With the last row its number would be gone too, were it not marked.
    return this.#mark({ ...state, goneUpTo: upTo, bytes: state.bytes - freedBytes, oldestMs: oldest?.tsMs });
  }

  /** Up to which number messages must go so that there is room; nothing where there is none to be made. */
  #roomFor(bytes: number, count = 1): number | undefined {
    const { limits } = this.#options;
    let [messages, left] = [this.messages + count, this.bytes + bytes];
    const isEnough = () => messages <= limits.messages && left <= limits.bytes;
    if (isEnough()) return 0;
    for (const size of this.#droppable()) {
      messages--;
      left -= size.bytes;
      if (isEnough()) return size.seq;
    }
    return undefined;
  }

  /** What was sent to a socket, and thus may go; oldest first. */
  *#droppable(): Generator<Size> {
    for (const size of this.#tables.sizesAfter(0)) {
      if (size.seq > this.sentUpTo) return;
      yield size;
    }
  }

  #retryAfterS(): number {
    const untilExpiryS = Math.ceil((this.nextExpiryMs - this.#options.now()) / 1000);
    return Math.max(1, Math.min(untilExpiryS, MAX_RETRY_AFTER_S));
  }
}
