import { waitUntil } from "cloudflare:workers";
import { Batch } from "../lib/batch.ts";
import { Unavailable } from "../lib/errors.ts";

/**
 * Combines calls of several requests to the same Durable Object into one: for a small request, the call is a large share of its cost. It
 * calls at once if no call is in flight. Otherwise it gathers items until a call ends, but no longer than `maxHoldMs`: a call may take
 * long, or its outcome may be lost.
 *
 * The first request of a batch makes the call. `waitUntil` keeps that request alive until the call ends, even if its client disconnects.
 * Each other request waits with its own promise and its own timer: workerd resumes a promise only in the request that created it, and
 * cancels a request as hung if it waits for nothing of its own.
 */
export interface CallBatcherOptions<T, R> {
  /** The called component, for error messages. */
  component: string;
  /** Returns one result for each item. */
  call(items: readonly T[]): Promise<readonly R[]>;
  /** How long an item waits for a call in flight. */
  maxHoldMs: number;
  /** Limit of the total weight of a call. A heavier item is sent alone. */
  maxWeight: number;
  /** How long each caller waits for its result. */
  timeoutMs: number;
}

interface PendingItem<T, R> {
  item: T;
  outcome: PromiseWithResolvers<R>;
}

export class CallBatcher<T, R> {
  readonly #options: CallBatcherOptions<T, R>;
  #pending: Batch<PendingItem<T, R>> | undefined;
  #inFlight = 0;

  constructor(options: CallBatcherOptions<T, R>) {
    this.#options = options;
  }

  /** Whether no item waits for a call or its result. */
  get isIdle(): boolean {
    return this.#inFlight === 0 && this.#pending === undefined;
  }

  /** Resolves with the item's result when the call with the item has ended. */
  async add(item: T, weight: number): Promise<R> {
    const { component, maxHoldMs, maxWeight, timeoutMs } = this.#options;
    const outcome = Promise.withResolvers<R>();
    const timer = setTimeout(
      () => outcome.reject(new Unavailable(component, new Error("No result in time"))),
      timeoutMs,
    );
    const pending = [{ item, outcome }];
    if (this.isIdle) waitUntil(this.#send(pending));
    else if (!this.#pending?.add(pending, weight)) {
      const batch = new Batch<PendingItem<T, R>>({ gatherMs: maxHoldMs, maxWeight });
      batch.add(pending, weight);
      this.#pending = batch;
      waitUntil(this.#sendWhenDue(batch));
    }
    try {
      return await outcome.promise;
    } finally {
      clearTimeout(timer);
    }
  }

  async #sendWhenDue(batch: Batch<PendingItem<T, R>>): Promise<void> {
    await batch.due;
    if (this.#pending === batch) this.#pending = undefined;
    await this.#send(batch.items);
  }

  async #send(batch: readonly PendingItem<T, R>[]): Promise<void> {
    this.#inFlight++;
    try {
      const results = await this.#options.call(batch.map(({ item }) => item));
      // `call` returns one result for each item.
      for (const [i, { outcome }] of batch.entries()) outcome.resolve(results[i] as R);
    } catch (error) {
      for (const { outcome } of batch) outcome.reject(error);
    }
    this.#inFlight--;
    this.#pending?.makeDue();
  }
}
