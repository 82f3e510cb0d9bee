import type { JobMessage } from "../../api/job-socket.ts";
import { KEPT_RAW_MESSAGES, type RawMessage, rawMessage } from "./raw-messages.ts";
import { type Row, RowStore } from "./row-store.ts";

/** One item of a message about an emulator or a command. */
export interface Item {
  /** Unique within the job. */
  id: string;
  type: "emulator" | "command";
  ts: string;
  data: Row;
}

export interface Gap {
  fromSeq: number;
  toSeq: number;
}

/** A snapshot of a stream, for display. */
export interface StreamView {
  messages: number;
  rows: number;
  rowsLength: number;
  rowsPerSecond: number;
  /** Rows of tables, the newest last. */
  lastRows: readonly Row[];
  /** Items about emulators and commands, the newest last. */
  lastItems: readonly Item[];
  gaps: readonly Gap[];
  /** Why the job failed. */
  failure: string | undefined;
  /** The service has sent its final message. */
  isComplete: boolean;
  /** The page has reached its limit of stored rows. */
  isFull: boolean;
  raw: readonly RawMessage[];
}

const SHOWN_ROWS = 100;
const SHOWN_ITEMS = 50;
const SHOWN_GAPS = 20;
/** In characters. A browser tab may run out of memory above this. */
export const MAX_ROWS_LENGTH = 256 * 1024 * 1024;

/** Collects the messages of a job's stream. Bounds what it keeps in memory; the rows are in a `RowStore`. */
export class ReceivedMessages {
  readonly store = new RowStore();
  readonly #rate = new RowRate();
  #messages = 0;
  #lastSeq = 0;
  #lastRows: readonly Row[] = [];
  #lastItems: readonly Item[] = [];
  #gaps: readonly Gap[] = [];
  #failure: string | undefined;
  #isComplete = false;
  #raw: readonly RawMessage[] = [];

  get isFull(): boolean {
    return this.store.length >= MAX_ROWS_LENGTH;
  }

  add(message: JobMessage, text: string): void {
    this.#messages += 1;
    this.#raw = lastOf(KEPT_RAW_MESSAGES, this.#raw, [rawMessage(message, text)]);
    if (message.final) this.#isComplete = true;
    switch (message.type) {
      case "agent_data":
      case "agent_details":
        this.store.add(message.data);
        this.#lastRows = lastOf(SHOWN_ROWS, this.#lastRows, message.data);
        break;
      case "emulator":
      case "command": {
        const { type, ts, seq } = message;
        const items = message.data.map((data, i) => ({ id: `${seq}.${i}`, type, ts, data }));
        this.store.add(message.data);
        this.#lastItems = lastOf(SHOWN_ITEMS, this.#lastItems, items);
        break;
      }
      case "gap": {
        // A gap may include messages that this page has received already.
        const gaps = message.data.map(({ from_seq, to_seq }) => ({
          fromSeq: Math.max(from_seq, this.#lastSeq + 1),
          toSeq: to_seq,
        }));
        this.#gaps = lastOf(SHOWN_GAPS, this.#gaps, gaps);
        break;
      }
      case "error":
        this.#failure = message.data.detail;
        break;
      case "status":
        break;
    }
    this.#lastSeq = message.seq;
  }

  view(nowMs: number): StreamView {
    const rows = this.store.count;
    this.#rate.record(rows, nowMs);
    return {
      messages: this.#messages,
      rows,
      rowsLength: this.store.length,
      rowsPerSecond: this.#rate.perSecond(rows, nowMs),
      lastRows: this.#lastRows,
      lastItems: this.#lastItems,
      gaps: this.#gaps,
      failure: this.#failure,
      isComplete: this.#isComplete,
      isFull: this.isFull,
      raw: this.#raw,
    };
  }
}

/** Returns the last `count` of both lists together, and copies no more than that. */
function lastOf<T>(count: number, before: readonly T[], more: readonly T[]): readonly T[] {
  const newest = more.slice(-count);
  return [...before.slice(Math.max(0, before.length + newest.length - count)), ...newest];
}

const RATE_WINDOW_MS = 5_000;
/** A few samples in a window are as precise as one for each message. */
const RATE_SAMPLE_MS = RATE_WINDOW_MS / 10;
const MIN_RATE_MS = 500;

/** Measures the rows per second over the last seconds. */
class RowRate {
  #samples: { atMs: number; count: number }[] = [];

  /** Records the total number of rows at a time. */
  record(count: number, nowMs: number): void {
    if (nowMs - (this.#samples.at(-1)?.atMs ?? Number.NEGATIVE_INFINITY) >= RATE_SAMPLE_MS) {
      this.#samples.push({ atMs: nowMs, count });
    }
    while (this.#samples.length > 1 && nowMs - (this.#samples[0]?.atMs ?? nowMs) > RATE_WINDOW_MS) {
      this.#samples.shift();
    }
  }

  perSecond(count: number, nowMs: number): number {
    const first = this.#samples[0];
    if (first === undefined || nowMs - first.atMs < MIN_RATE_MS) return 0;
    return ((count - first.count) * 1_000) / (nowMs - first.atMs);
  }
}
