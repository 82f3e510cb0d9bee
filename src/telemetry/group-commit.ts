import { Unavailable } from "../errors.ts";
import { pause } from "./pause.ts";

/**
 * Commits what many callers bring in few batches. Whoever comes while a batch is under way waits for the next one; each is
 * answered when the batch that it is in has been committed.
 */
export interface GroupCommitOptions<T> {
  /** What of a batch there is to commit: the rest is committed already. Asked once, right before. */
  select(items: readonly T[]): Promise<readonly T[]>;
  /** Commits a batch. Called again with the same token, it changes nothing. */
  commit(items: readonly T[], token: string): Promise<void>;
  /** Whether the store has looked at a batch and did not take it; otherwise it was away, and others had not fared better. */
  isRefused(error: Unavailable): boolean;
  /** How long the first of a batch waits for company. */
  gatherMs: number;
  /** What fits in a batch, and what may wait; beyond that callers are refused. */
  maxBatch: number;
  maxWaiting: number;
  now: () => number;
}

interface Batch<T> {
  items: T[];
  done: PromiseWithResolvers<void>;
}

/** A batch of which nobody knows whether it was committed: its callers were told to come again, and may do so at once. */
interface Doubt<T> {
  items: readonly T[];
  token: string;
  sinceMs: number;
}

/** A batch that the store does not take must not hold up the others for long. */
const MAX_REFUSED_MS = 60_000;
/** One may have been half committed when the store went away: what is left of it can only be told under its own token. */
const MAX_DOUBT_MS = 15 * 60_000;

export class GroupCommit<T> {
  readonly #options: GroupCommitOptions<T>;
  readonly #waiting: Batch<T>[] = [];
  #doubt: Doubt<T> | undefined;
  #isRunning = false;

  constructor(options: GroupCommitOptions<T>) {
    this.#options = options;
  }

  /** How many items are in no batch that is under way. */
  get waiting(): number {
    return this.#waiting.reduce((sum, batch) => sum + batch.items.length, 0);
  }

  /** Resolves when the items have been committed. All of one call are in one batch. */
  async add(items: readonly T[]): Promise<void> {
    const { maxBatch, maxWaiting } = this.#options;
    if (this.waiting + items.length > maxWaiting)
      throw new Unavailable("telemetry store", new Error("Too much is waiting"));
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
      await this.#take(batch).then(batch.done.resolve, (error: unknown) => {
        batch.done.reject(error);
        // Where the store is away, those behind it would only wait for as long once more before they hear the same.
        if (error instanceof Unavailable) for (const next of this.#waiting.splice(0)) next.done.reject(error);
      });
    }
    this.#isRunning = false;
  }

  async #take(batch: Batch<T>): Promise<void> {
    // First what is in doubt: its callers come again, and whether what they bring is new must be known by then.
    if (this.#doubt !== undefined) await this.#commit(this.#doubt);
    const items = await this.#options.select(batch.items);
    if (items.length === 0) return;
    await this.#commit({ items, token: crypto.randomUUID(), sinceMs: this.#options.now() });
  }

  async #commit(batch: Doubt<T>): Promise<void> {
    try {
      await this.#options.commit(batch.items, batch.token);
      this.#doubt = undefined;
    } catch (error) {
      this.#doubt = this.#mayPass(error, batch) ? batch : undefined;
      throw error;
    }
  }

  #mayPass(error: unknown, { sinceMs }: Doubt<T>): boolean {
    if (!(error instanceof Unavailable)) return false;
    const { isRefused, now } = this.#options;
    return now() - sinceMs < (isRefused(error) ? MAX_REFUSED_MS : MAX_DOUBT_MS);
  }
}
