import type { Age, MessageStore } from "./message-store.ts";

/** Longer keys are refused by whoever takes them from outside. */
export const MAX_KEY_LENGTH = 256;

export interface KeyLimits {
  retentionMs: number;
  /** The keys of the last so many messages are remembered. */
  keys: number;
}

/** Which message a key was first used for. Numbers and times rise together, so what is to be forgotten is always the oldest. */
export class IdempotencyKeys {
  readonly #tables: MessageStore;
  readonly #limits: KeyLimits;
  readonly #now: () => number;

  constructor(tables: MessageStore, limits: KeyLimits, now: () => number) {
    this.#tables = tables;
    this.#limits = limits;
    this.#now = now;
  }

  seqOf(key: string, lastSeq: number): number | undefined {
    const found = this.#tables.findKey(key);
    return found === undefined || this.#isOver(found, lastSeq) ? undefined : found.seq;
  }

  remember(key: string, age: Age): void {
    for (let oldest = this.#tables.oldestKey(); oldest !== undefined; oldest = this.#tables.oldestKey()) {
      if (!this.#isOver(oldest, age.seq)) break;
      this.#tables.deleteKey(oldest.seq);
    }
    this.#tables.insertKey(key, age);
  }

  #isOver({ seq, tsMs }: Age, lastSeq: number): boolean {
    return tsMs + this.#limits.retentionMs <= this.#now() || seq <= lastSeq - this.#limits.keys;
  }
}
