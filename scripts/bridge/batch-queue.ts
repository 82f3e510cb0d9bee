import { setTimeout as sleep } from "node:timers/promises";

/** Sends what comes in batches, one after the other; a batch that cannot be sent is kept and tried again until it can. */

export interface BatchQueueOptions<T> {
  send(batch: T[]): Promise<void>;
  signal: AbortSignal;
}

const MAX_BATCH = 1_000;
const MAX_BATCH_BYTES = 512 * 1024;
/** While so many wait, whoever brings more is told to wait as well. */
const HIGH_WATER = 10_000;
const LOW_WATER = HIGH_WATER / 2;
const DRAIN_POLL_MS = 20;
const FIRST_PAUSE_MS = 200;
const MAX_PAUSE_MS = 5_000;

export class BatchQueue<T extends { bytes: number }> {
  readonly #options: BatchQueueOptions<T>;
  readonly #waiting: T[] = [];
  #isSending = false;
  #room = Promise.withResolvers<void>();

  constructor(options: BatchQueueOptions<T>) {
    this.#options = options;
  }

  /** Takes an item. What it returns, if anything, comes true when there is room for more. */
  add(item: T): Promise<void> | undefined {
    this.#waiting.push(item);
    if (!this.#isSending) {
      this.#isSending = true;
      // After the other messages that have arrived already.
      setImmediate(() => void this.#run());
    }
    return this.#waiting.length < HIGH_WATER ? undefined : this.#room.promise;
  }

  /** Comes true when nothing waits and nothing is under way. */
  async drained(): Promise<void> {
    while (this.#isSending && !this.#options.signal.aborted) await sleep(DRAIN_POLL_MS);
  }

  async #run(): Promise<void> {
    while (this.#waiting.length > 0 && !this.#options.signal.aborted) {
      await this.#send(this.#take());
      if (this.#waiting.length > LOW_WATER) continue;
      this.#room.resolve();
      this.#room = Promise.withResolvers();
    }
    this.#isSending = false;
  }

  #take(): T[] {
    let bytes = 0;
    let count = 0;
    for (const item of this.#waiting) {
      bytes += item.bytes;
      if (count === MAX_BATCH || (count > 0 && bytes > MAX_BATCH_BYTES)) break;
      count++;
    }
    return this.#waiting.splice(0, count);
  }

  async #send(batch: T[]): Promise<void> {
    for (let pauseMs = FIRST_PAUSE_MS; !this.#options.signal.aborted; pauseMs = Math.min(pauseMs * 2, MAX_PAUSE_MS)) {
      try {
        return await this.#options.send(batch);
      } catch (error) {
        console.log(`${batch.length} messages wait: ${(error as Error).message}`);
        await sleep(pauseMs, undefined, { signal: this.#options.signal }).catch(() => {});
      }
    }
  }
}
