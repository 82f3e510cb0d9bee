import { TooMany } from "../lib/errors.ts";

/** Time after which a reader that has not reported counts as gone: the platform cancels a request whose client has disconnected. */
const STALE_AFTER_MS = 10_000;
const RETRY_AFTER_S = 10;

export interface ReaderSlot {
  /** Reports that the reader is still there. */
  touch(): void;
  release(): void;
}

/** Limits how many sockets and waiting requests an account has in this isolate. */
export class ReaderSlots {
  readonly #seenMs = new Map<string, Map<symbol, number>>();
  readonly #max: number;
  readonly #now: () => number;

  constructor(max: number, now: () => number = Date.now) {
    this.#max = max;
    this.#now = now;
  }

  /** Throws `TooMany` if the account has no slot left. */
  take(accountId: string): ReaderSlot {
    const slots = this.#seenMs.get(accountId) ?? new Map<symbol, number>();
    for (const [slot, seenMs] of slots) if (seenMs < this.#now() - STALE_AFTER_MS) slots.delete(slot);
    if (slots.size >= this.#max) throw new TooMany(RETRY_AFTER_S, `Too many readers: at most ${this.#max} per account`);
    const slot = Symbol();
    const touch = (): void => void slots.set(slot, this.#now());
    touch();
    this.#seenMs.set(accountId, slots);
    return {
      touch,
      release: () => {
        slots.delete(slot);
        if (slots.size === 0) this.#seenMs.delete(accountId);
      },
    };
  }
}
