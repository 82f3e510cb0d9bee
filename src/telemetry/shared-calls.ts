import { waitUntil } from "cloudflare:workers";
import { Unavailable } from "../errors.ts";
import { pause } from "./pause.ts";

/**
 * Calls that many requests make to the same place within a moment, made as one: for a small request, a call to a Durable Object is a
 * good part of all that it costs.
 *
 * What is done for several requests belongs to the first of them. It is kept alive until the call is over, even if its own client goes
 * away; the others wait for it, each with a promise and a timer of its own: workerd hands over a promise to the request that made it,
 * and takes one that waits for nothing of its own to hang.
 */
export interface SharedCallsOptions<T> {
  /** What is called, in words. */
  part: string;
  call(items: readonly T[]): Promise<void>;
  /** How long the first waits for company. */
  gatherMs: number;
  /** What goes together in one call at the most; what weighs more by itself goes by itself. */
  maxWeight: number;
  /** So long everyone waits for an outcome. */
  patienceMs: number;
}

interface Gathered<T> {
  items: T[];
  weight: number;
  waiting: PromiseWithResolvers<void>[];
}

export class SharedCalls<T> {
  readonly #options: SharedCallsOptions<T>;
  #gathered: Gathered<T> | undefined;

  constructor(options: SharedCallsOptions<T>) {
    this.#options = options;
  }

  /** Resolves when the call that the item is in has been made. */
  async add(item: T, weight: number): Promise<void> {
    const { part, maxWeight, patienceMs } = this.#options;
    const outcome = Promise.withResolvers<void>();
    const timer = setTimeout(() => outcome.reject(new Unavailable(part, new Error("No outcome"))), patienceMs);
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
      await outcome.promise;
    } finally {
      clearTimeout(timer);
    }
  }

  async #make(gathered: Gathered<T>): Promise<void> {
    await pause(this.#options.gatherMs);
    if (this.#gathered === gathered) this.#gathered = undefined;
    try {
      await this.#options.call(gathered.items);
      for (const { resolve } of gathered.waiting) resolve();
    } catch (error) {
      for (const { reject } of gathered.waiting) reject(error);
    }
  }
}
