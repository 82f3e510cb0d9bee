export interface BatchOptions {
  /** How long the first item waits for others. With 0, until the next turn of the event loop. */
  gatherMs: number;
  /** Limits of the batch. The items of one `add` stay together, even beyond the limits. */
  maxItems?: number;
  maxWeight: number;
}

/**
 * Gathers items that are sent together. The batch is due when its first item has waited for the gathering delay, when more items do not
 * fit, or when its owner calls `makeDue`. It accepts items until its owner takes it: a batch that is due may have to wait for its turn.
 */
export class Batch<T> {
  readonly items: T[] = [];
  readonly #options: BatchOptions;
  readonly #due = Promise.withResolvers<void>();
  #weight = 0;

  constructor(options: BatchOptions) {
    this.#options = options;
    // The timer is never cleared: in a Worker, only the request that set a timer can clear it.
    setTimeout(this.#due.resolve, options.gatherMs);
  }

  get weight(): number {
    return this.#weight;
  }

  /** Resolves when the batch is due. */
  get due(): Promise<void> {
    return this.#due.promise;
  }

  /** Ends the gathering delay. */
  makeDue(): void {
    this.#due.resolve();
  }

  /** Adds items if they fit. Otherwise makes the batch due and returns false. */
  add(items: readonly T[], weight: number): boolean {
    const { maxItems = Number.POSITIVE_INFINITY, maxWeight } = this.#options;
    const isTooMuch = this.items.length + items.length > maxItems || this.#weight + weight > maxWeight;
    if (this.items.length > 0 && isTooMuch) {
      this.makeDue();
      return false;
    }
    for (const item of items) this.items.push(item);
    this.#weight += weight;
    return true;
  }
}
