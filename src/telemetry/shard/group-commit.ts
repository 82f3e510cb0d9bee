import { sleep } from "../../lib/deadline.ts";
import { Unavailable } from "../../lib/errors.ts";

/**
 * Commits what many callers bring in few batches. A caller that comes while a batch is under way waits for the next one. Each is
 * answered when the batches that its items are in have been committed.
 */
export interface GroupCommitOptions<T> {
  /** What of a batch there is to commit: the rest is committed already. Asked right before each commit. */
  select(items: readonly T[]): Promise<readonly T[]>;
  /** Commits a batch. Called again with the same token, it changes nothing. */
  commit(items: readonly T[], token: string): Promise<void>;
  /** Whether the store has looked at a batch and did not take it; otherwise it was away, and others had not fared better. */
  isRefused(error: Unavailable): boolean;
  /**
   * The lane of an item; none for the present. A batch holds items of one lane only, so that one insert touches few partitions. Batches
   * of the present and of other lanes take turns.
   */
  laneOf?(item: T): number | undefined;
  /** How long the first of a batch waits for company. */
  gatherMs: number;
  /** What fits in a batch, in items and in length; one call's items of one lane stay together. */
  maxBatch: number;
  maxBatchLength: number;
  /** What may wait; beyond that callers are refused. */
  maxWaiting: number;
  maxWaitingLength: number;
  now: () => number;
}

/** An item that the store rejects as wrong in itself. */
export interface Rejected<T> {
  item: T;
  error: unknown;
}

interface Batch<T> {
  lane: number | undefined;
  items: T[];
  length: number;
  done: PromiseWithResolvers<readonly Rejected<T>[]>;
}

/** A batch that may or may not have been committed: its callers have been asked to come again, and may do so at once. */
interface Doubt<T> {
  items: readonly T[];
  token: string;
  sinceMs: number;
}

/** A batch that the store does not take must not hold up the others for long. */
const MAX_REFUSED_MS = 60_000;
/** One may have been half committed when the store went away: what is left of it can only be told under its own token. */
const MAX_DOUBT_MS = 15 * 60_000;
/** Commits for one batch: enough to find four wrong items among 5,000. What is left after that fails as a whole. */
const MAX_COMMITS = 100;

export class GroupCommit<T> {
  readonly #options: GroupCommitOptions<T>;
  readonly #waiting: Batch<T>[] = [];
  #doubt: Doubt<T> | undefined;
  #isRunning = false;
  #wasPresent = false;

  constructor(options: GroupCommitOptions<T>) {
    this.#options = options;
  }

  /** How many items are in no batch that is under way. */
  get waiting(): number {
    return this.#waiting.reduce((sum, batch) => sum + batch.items.length, 0);
  }

  get #waitingLength(): number {
    return this.#waiting.reduce((sum, { length }) => sum + length, 0);
  }

  /**
   * Resolves when the items have been committed, with those that the store rejects as wrong in themselves.
   * @param length of all items together, as they came: memory is bounded by it
   */
  async add(items: readonly T[], length: number): Promise<readonly Rejected<T>[]> {
    const { laneOf, maxWaiting, maxWaitingLength } = this.#options;
    if (this.waiting + items.length > maxWaiting || this.#waitingLength + length > maxWaitingLength)
      throw new Unavailable("telemetry store", new Error("Too much is waiting"));
    const lanes = Map.groupBy(items, (item) => laneOf?.(item));
    const batches = [...lanes].map(([lane, its]) =>
      this.#put(lane, its, Math.ceil((length * its.length) / items.length)),
    );
    void this.#run();
    const own = new Set(items);
    const rejected = await Promise.all(batches.map(({ done }) => done.promise));
    return rejected.flat().filter(({ item }) => own.has(item));
  }

  #put(lane: number | undefined, items: readonly T[], length: number): Batch<T> {
    const { maxBatch, maxBatchLength } = this.#options;
    let batch = this.#waiting.findLast((waiting) => waiting.lane === lane);
    if (batch === undefined || batch.items.length + items.length > maxBatch || batch.length + length > maxBatchLength) {
      batch = { lane, items: [], length: 0, done: Promise.withResolvers() };
      this.#waiting.push(batch);
    }
    for (const item of items) batch.items.push(item);
    batch.length += length;
    return batch;
  }

  async #run(): Promise<void> {
    if (this.#isRunning) return;
    this.#isRunning = true;
    await sleep(this.#options.gatherMs);
    for (let batch = this.#next(); batch !== undefined; batch = this.#next()) {
      const { items, done } = batch;
      await this.#take(items).then(done.resolve, (error: unknown) => {
        done.reject(error);
        // Where the store is away, those behind it would only wait for as long once more before they hear the same.
        if (error instanceof Unavailable) for (const next of this.#waiting.splice(0)) next.done.reject(error);
      });
    }
    this.#isRunning = false;
  }

  /** Takes turns: the present waits for one other batch at the most, and a backlog is not put off for ever. */
  #next(): Batch<T> | undefined {
    const present = this.#waiting.findIndex(({ lane }) => lane === undefined);
    const other = this.#waiting.findIndex(({ lane }) => lane !== undefined);
    const isPresent = present !== -1 && (other === -1 || !this.#wasPresent);
    this.#wasPresent = isPresent;
    const index = isPresent ? present : other;
    return index === -1 ? undefined : this.#waiting.splice(index, 1)[0];
  }

  async #take(items: readonly T[]): Promise<readonly Rejected<T>[]> {
    await this.#settleDoubt();
    return await this.#bisect(items, { commitsLeft: MAX_COMMITS });
  }

  /** First what is in doubt: its callers come again, and whether what they bring is new must be known by then. */
  async #settleDoubt(): Promise<void> {
    if (this.#doubt === undefined) return;
    try {
      await this.#commit(this.#doubt);
    } catch (error) {
      // One that is wrong in itself is none of the next callers' business; its own come again with it.
      if (error instanceof Unavailable) throw error;
    }
  }

  /** Commits the items, each part under a token of its own. A part that the store rejects is halved until its wrong items are found. */
  async #bisect(items: readonly T[], budget: { commitsLeft: number }): Promise<readonly Rejected<T>[]> {
    try {
      const fresh = await this.#options.select(items);
      budget.commitsLeft--;
      if (fresh.length > 0)
        await this.#commit({ items: fresh, token: crypto.randomUUID(), sinceMs: this.#options.now() });
      return [];
    } catch (error) {
      if (error instanceof Unavailable) throw error;
      if (items.length === 1 || budget.commitsLeft <= 0) return items.map((item) => ({ item, error }));
      const middle = items.length >> 1;
      const first = await this.#bisect(items.slice(0, middle), budget);
      return [...first, ...(await this.#bisect(items.slice(middle), budget))];
    }
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
