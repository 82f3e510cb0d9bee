import type { JobMessage } from "../../api/job-socket.ts";
import { Rate } from "./rate.ts";
import { KEPT_RAW_MESSAGES, type RawMessage, rawMessage } from "./raw-messages.ts";
import { type Row, RowStore } from "./row-store.ts";

/** One item of a message, where it may be of several kinds. */
export interface Item {
  /** Tells it from all others. */
  id: string;
  type: "emulator" | "command";
  ts: string;
  data: Row;
}

export interface Gap {
  fromSeq: number;
  toSeq: number;
}

/** What there is to show of a stream so far. */
export interface StreamView {
  messages: number;
  rows: number;
  rowsLength: number;
  rowsPerSecond: number;
  /** Of tables; the newest last. */
  lastRows: readonly Row[];
  /** Of emulators and commands; the newest last. */
  lastItems: readonly Item[];
  gaps: readonly Gap[];
  /** Why the job has failed. */
  failure: string | undefined;
  /** The service itself has nothing more to say. */
  isComplete: boolean;
  /** There is no room for more. */
  isFull: boolean;
  raw: readonly RawMessage[];
}

const SHOWN_ROWS = 100;
const SHOWN_ITEMS = 50;
const SHOWN_GAPS = 20;
/** Beyond it a browser is not the place. In characters. */
export const MAX_ROWS_LENGTH = 256 * 1024 * 1024;

/** All that a job's stream has brought. What is kept in memory is bounded; the rows themselves are in a store of their own. */
export class Received {
  readonly store = new RowStore();
  readonly #rate = new Rate();
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

  take(message: JobMessage, text: string): void {
    this.#messages += 1;
    this.#raw = last(KEPT_RAW_MESSAGES, this.#raw, [rawMessage(message, text)]);
    if (message.final) this.#isComplete = true;
    switch (message.type) {
      case "agent_data":
      case "agent_details":
        this.store.add(message.data);
        this.#lastRows = last(SHOWN_ROWS, this.#lastRows, message.data);
        break;
      case "emulator":
      case "command": {
        const { type, ts, seq } = message;
        const items = message.data.map((data, i) => ({ id: `${seq}.${i}`, type, ts, data }));
        this.store.add(message.data);
        this.#lastItems = last(SHOWN_ITEMS, this.#lastItems, items);
        break;
      }
      case "gap": {
        // What we have already is not missing here.
        const gaps = message.data.map(({ from_seq, to_seq }) => ({
          fromSeq: Math.max(from_seq, this.#lastSeq + 1),
          toSeq: to_seq,
        }));
        this.#gaps = last(SHOWN_GAPS, this.#gaps, gaps);
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
    this.#rate.mark(rows, nowMs);
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

/** The last of both together; never more than that is copied. */
function last<T>(count: number, before: readonly T[], more: readonly T[]): readonly T[] {
  const newest = more.slice(-count);
  return [...before.slice(Math.max(0, before.length + newest.length - count)), ...newest];
}
