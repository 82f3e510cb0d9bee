import { Batch } from "../../lib/batch.ts";
import { Unavailable } from "../../lib/errors.ts";

/**
 * Commits the items of many callers in few batches, one batch at a time. Items that arrive during a commit wait for a later batch. A
 * caller gets its result when all batches with its items are committed.
 */
export interface GroupCommitOptions<T> {
  /** Returns the items that are not committed yet. Called right before each commit. */
  select(items: readonly T[]): Promise<readonly T[]>;
  /** Commits a batch. A second call with the same token must change nothing. */
  commit(items: readonly T[], token: string): Promise<void>;
  /** Returns whether the store refused this batch in particular. Otherwise it is an outage, which affects every batch. */
  isRefused(error: Unavailable): boolean;
  /**
   * Returns the lane of an item: `undefined` for a current one, a number for a backlog. A batch holds items of one lane only, so that one
   * insert touches few partitions. Current batches and backlog batches alternate.
   */
  laneOf?(item: T): number | undefined;
  /** How long the first item of a batch waits for others. A full batch does not wait. */
  gatherMs: number;
  /** Limits of a batch, in items and in length. The items of one call and lane stay together, even beyond the limits. */
  maxBatch: number;
  maxBatchLength: number;
  /** Limits of the waiting items. Beyond them, `add` throws `Unavailable`. */
  maxWaiting: number;
  maxWaitingLength: number;
  now: () => number;
}

/** An item that the store rejects as invalid. */
export interface RejectedItem<T> {
  item: T;
  error: unknown;
}

interface LaneBatch<T> {
  lane: number | undefined;
  batch: Batch<T>;
  done: PromiseWithResolvers<readonly RejectedItem<T>[]>;
}

/** A batch whose commit has an unknown outcome. Its callers got `Unavailable`, and may retry at once. */
interface UncertainBatch<T> {
  items: readonly T[];
  token: string;
  sinceMs: number;
}

/** How long a batch that the store refuses is retried. It blocks the others. */
const MAX_REFUSED_MS = 60_000;
/** How long a batch is retried during an outage. It may be half committed, and only its own token deduplicates the rest. */
const MAX_UNCERTAIN_MS = 15 * 60_000;
/** Commits for one batch: enough to find four invalid items among 5,000. Beyond it, the remaining items are rejected together. */
const MAX_COMMITS = 100;

export class GroupCommit<T> {
  readonly #options: GroupCommitOptions<T>;
  readonly #waiting: LaneBatch<T>[] = [];
  #uncertain: UncertainBatch<T> | undefined;
  #isRunning = false;
  #wasCurrent = false;

  constructor(options: GroupCommitOptions<T>) {
    this.#options = options;
  }

  /** The number of items whose commit has not begun. */
  get waiting(): number {
    return this.#waiting.reduce((sum, { batch }) => sum + batch.items.length, 0);
  }

  get #waitingLength(): number {
    return this.#waiting.reduce((sum, { batch }) => sum + batch.weight, 0);
  }

  /**
   * Resolves when the items are committed. Returns those that the store rejects as invalid.
   * @param length of all items together, as received: the limits on memory count it
   */
  async add(items: readonly T[], length: number): Promise<readonly RejectedItem<T>[]> {
    const { laneOf, maxWaiting, maxWaitingLength } = this.#options;
    if (this.waiting + items.length > maxWaiting || this.#waitingLength + length > maxWaitingLength)
      throw new Unavailable("telemetry store", new Error("Too many samples are waiting"));
    const lanes = Map.groupBy(items, (item) => laneOf?.(item));
    const batches = [...lanes].map(([lane, laneItems]) =>
      this.#put(lane, laneItems, Math.ceil((length * laneItems.length) / items.length)),
    );
    void this.#run();
    const own = new Set(items);
    const rejected = await Promise.all(batches.map(({ done }) => done.promise));
    return rejected.flat().filter(({ item }) => own.has(item));
  }

  #put(lane: number | undefined, items: readonly T[], length: number): LaneBatch<T> {
    const last = this.#waiting.findLast((waiting) => waiting.lane === lane);
    if (last?.batch.add(items, length)) return last;
    const { gatherMs, maxBatch: maxItems, maxBatchLength: maxWeight } = this.#options;
    const batch = new Batch<T>({ gatherMs, maxItems, maxWeight });
    batch.add(items, length);
    const added = { lane, batch, done: Promise.withResolvers<readonly RejectedItem<T>[]>() };
    this.#waiting.push(added);
    return added;
  }

  async #run(): Promise<void> {
    if (this.#isRunning) return;
    this.#isRunning = true;
    for (let [oldest] = this.#waiting; oldest !== undefined; [oldest] = this.#waiting) {
      await oldest.batch.due;
      const next = this.#takeNext();
      if (next === undefined) break;
      await this.#commitBatch(next.batch.items).then(next.done.resolve, (error: unknown) => {
        next.done.reject(error);
        // During an outage, each waiting batch would only fail after the same time-out again.
        if (error instanceof Unavailable) for (const { done } of this.#waiting.splice(0)) done.reject(error);
      });
    }
    this.#isRunning = false;
  }

  /** Takes the next batch. Alternates: a current batch waits for at most one backlog batch, and backlogs are not starved. */
  #takeNext(): LaneBatch<T> | undefined {
    const current = this.#waiting.findIndex(({ lane }) => lane === undefined);
    const backlog = this.#waiting.findIndex(({ lane }) => lane !== undefined);
    const isCurrent = current !== -1 && (backlog === -1 || !this.#wasCurrent);
    this.#wasCurrent = isCurrent;
    return this.#waiting.splice(isCurrent ? current : backlog, 1)[0];
  }

  async #commitBatch(items: readonly T[]): Promise<readonly RejectedItem<T>[]> {
    await this.#settleUncertain();
    return await this.#bisect(items, { commitsLeft: MAX_COMMITS });
  }

  /** Retries an uncertain batch first. Its callers retry too, and by then it must be known which of their items are stored. */
  async #settleUncertain(): Promise<void> {
    if (this.#uncertain === undefined) return;
    try {
      await this.#commit(this.#uncertain);
    } catch (error) {
      // An invalid batch does not concern the next callers. Its own callers retry it.
      if (error instanceof Unavailable) throw error;
    }
  }

  /** Commits the items. Halves a batch that the store rejects until the invalid items are found; each half has its own token. */
  async #bisect(items: readonly T[], budget: { commitsLeft: number }): Promise<readonly RejectedItem<T>[]> {
    try {
      const selected = await this.#options.select(items);
      budget.commitsLeft--;
      if (selected.length > 0)
        await this.#commit({ items: selected, token: crypto.randomUUID(), sinceMs: this.#options.now() });
      return [];
    } catch (error) {
      if (error instanceof Unavailable) throw error;
      if (items.length === 1 || budget.commitsLeft <= 0) return items.map((item) => ({ item, error }));
      const middle = items.length >> 1;
      const first = await this.#bisect(items.slice(0, middle), budget);
      return [...first, ...(await this.#bisect(items.slice(middle), budget))];
    }
  }

  async #commit(batch: UncertainBatch<T>): Promise<void> {
    try {
      await this.#options.commit(batch.items, batch.token);
      this.#uncertain = undefined;
    } catch (error) {
      this.#uncertain = this.#isUncertain(error, batch) ? batch : undefined;
      throw error;
    }
  }

  /** Returns whether a failed commit may have succeeded in the store and is still worth a retry. */
  #isUncertain(error: unknown, { sinceMs }: UncertainBatch<T>): boolean {
    if (!(error instanceof Unavailable)) return false;
    const { isRefused, now } = this.#options;
    return now() - sinceMs < (isRefused(error) ? MAX_REFUSED_MS : MAX_UNCERTAIN_MS);
  }
}
