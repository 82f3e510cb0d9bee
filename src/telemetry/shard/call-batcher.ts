import { waitUntil } from "cloudflare:workers";
import { Unavailable } from "../../lib/errors.ts";
import { pause } from "../../lib/sleep.ts";

/**
 * Combines calls of several requests to the same Durable Object into one: for a small request, the call is a large share of its cost.
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
  /** How long the first item waits for others. */
  gatherMs: number;
  /** Limit of the total weight of a call. A heavier item is sent alone. */
  maxWeight: number;
  /** How long each caller waits for its result. */
  timeoutMs: number;
}

interface PendingBatch<T, R> {
  items: T[];
  weight: number;
  outcomes: PromiseWithResolvers<R>[];
}

export class CallBatcher<T, R> {
  readonly #options: CallBatcherOptions<T, R>;
  #pending: PendingBatch<T, R> | undefined;

  constructor(options: CallBatcherOptions<T, R>) {
    this.#options = options;
  }

  /** Resolves with the item's result when the call with the item has ended. */
  async add(item: T, weight: number): Promise<R> {
    const { component, maxWeight, timeoutMs } = this.#options;
    const outcome = Promise.withResolvers<R>();
    const timer = setTimeout(
      () => outcome.reject(new Unavailable(component, new Error("No result in time"))),
      timeoutMs,
    );
    let batch = this.#pending;
    if (batch === undefined || batch.weight + weight > maxWeight) {
      batch = { items: [], weight: 0, outcomes: [] };
      this.#pending = batch;
      waitUntil(this.#send(batch));
    }
    batch.items.push(item);
    batch.weight += weight;
    batch.outcomes.push(outcome);
    try {
      return await outcome.promise;
    } finally {
      clearTimeout(timer);
    }
  }

  async #send(batch: PendingBatch<T, R>): Promise<void> {
    await pause(this.#options.gatherMs);
    if (this.#pending === batch) this.#pending = undefined;
    try {
      const results = await this.#options.call(batch.items);
      // `call` returns one result for each item.
      for (const [i, { resolve }] of batch.outcomes.entries()) resolve(results[i] as R);
    } catch (error) {
      for (const { reject } of batch.outcomes) reject(error);
    }
  }
}
