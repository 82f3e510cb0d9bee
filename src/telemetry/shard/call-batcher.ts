import { waitUntil } from "cloudflare:workers";
import { sleep } from "../../lib/deadline.ts";
import { Unavailable } from "../../lib/errors.ts";

/**
 * Calls that many requests make to the same place within a moment, made as one: for a small request, a call to a Durable Object is a
 * good part of all that it costs.
 *
 * What is done for several requests belongs to the first of them. It is kept alive until the call is over, even if its own client goes
 * away; the others wait for it, each with a promise and a timer of its own: workerd hands over a promise to the request that made it,
 * and takes one that waits for nothing of its own to hang.
 */
export interface CallBatcherOptions<T, R> {
  /** What is called, in words. */
  part: string;
  /** Returns one result for each item. */
  call(items: readonly T[]): Promise<readonly R[]>;
  /** How long the first waits for company. */
  gatherMs: number;
  /** What goes together in one call at the most; what weighs more by itself goes by itself. */
  maxWeight: number;
  /** So long everyone waits for an outcome. */
  timeoutMs: number;
}

interface Gathered<T, R> {
  items: T[];
  weight: number;
  waiting: PromiseWithResolvers<R>[];
}

export class CallBatcher<T, R> {
  readonly #options: CallBatcherOptions<T, R>;
  #gathered: Gathered<T, R> | undefined;

  constructor(options: CallBatcherOptions<T, R>) {
    this.#options = options;
  }

  /** Resolves when the call that the item is in has been made, with the item's result. */
  async add(item: T, weight: number): Promise<R> {
    const { part, maxWeight, timeoutMs } = this.#options;
    const outcome = Promise.withResolvers<R>();
    const timer = setTimeout(() => outcome.reject(new Unavailable(part, new Error("No outcome"))), timeoutMs);
    let gathered = this.#gathered;
    if (gathered === undefined || gathered.weight + weight > maxWeight) {
      gathered = { items: [], weight: 0, waiting: [] };
      this.#gathered = gathered;
      waitUntil(this.#make(gathered));
    }
    gathered.items.push(item);
    gathered.weight += weight;
    gathered.waiting.push(outcome);
    try {
      return await outcome.promise;
    } finally {
      clearTimeout(timer);
    }
  }

  async #make(gathered: Gathered<T, R>): Promise<void> {
    await sleep(this.#options.gatherMs);
    if (this.#gathered === gathered) this.#gathered = undefined;
    try {
      const results = await this.#options.call(gathered.items);
      // `call` returns one for each item.
      for (const [i, { resolve }] of gathered.waiting.entries()) resolve(results[i] as R);
    } catch (error) {
      for (const { reject } of gathered.waiting) reject(error);
    }
  }
}
