import { Unavailable } from "../errors.ts";

/**
 * Commits what many callers bring in few batches. Whoever comes while a batch is under way waits for the next one; each is
 * answered when the batch that it is in has been committed.
 */
export interface GroupCommitOptions<T> {
  /** Commits a batch. Called again with the same token if it fails in a way that may pass. */
  commit(items: readonly T[], token: string): Promise<void>;
  /** How long the first of a batch waits for company. */
  gatherMs: number;
  /** What fits in a batch, and what may wait; beyond that callers are refused. */
  maxBatch: number;
  maxWaiting: number;
  /** How often a batch is tried, with growing pauses in between. */
  attempts: number;
}

interface Batch<T> {
  items: T[];
  done: PromiseWithResolvers<void>;
}

const FIRST_PAUSE_MS = 100;

export class GroupCommit<T> {
  readonly #options: GroupCommitOptions<T>;
  readonly #waiting: Batch<T>[] = [];
  #isRunning = false;

  constructor(options: GroupCommitOptions<T>) {
    this.#options = options;
  }

  /** Resolves when the items have been committed. All of one call are in one batch. */
  async add(items: readonly T[]): Promise<void> {
    const { maxBatch, maxWaiting } = this.#options;
    const waiting = this.#waiting.reduce((sum, batch) => sum + batch.items.length, 0);
    if (waiting + items.length > maxWaiting) throw new Unavailable("telemetry store", new Error("Too much is waiting"));
    let batch = this.#waiting.at(-1);
    if (batch === undefined || batch.items.length + items.length > maxBatch) {
      batch = { items: [], done: Promise.withResolvers() };
      this.#waiting.push(batch);
    }
    batch.items.push(...items);
    void this.#run();
    await batch.done.promise;
  }

  async #run(): Promise<void> {
    if (this.#isRunning) return;
    this.#isRunning = true;
    await pause(this.#options.gatherMs);
    for (let batch = this.#waiting.shift(); batch !== undefined; batch = this.#waiting.shift()) {
      await this.#commit(batch).then(batch.done.resolve, batch.done.reject);
    }
    this.#isRunning = false;
  }

  async #commit({ items }: Batch<T>): Promise<void> {
    // One token for all tries of a batch: a try that seemed to fail may have been committed.
    const token = crypto.randomUUID();
    for (let attempt = 1; ; attempt++) {
      try {
        return await this.#options.commit(items, token);
      } catch (error) {
        if (!(error instanceof Unavailable) || attempt >= this.#options.attempts) throw error;
        await pause(FIRST_PAUSE_MS * 2 ** (attempt - 1));
      }
    }
  }
}

const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));
