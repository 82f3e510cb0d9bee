/** Quantiles, medians and limits of concurrency. */

export class Quantiles {
  readonly #values: number[] = [];

  add(value: number): void {
    this.#values.push(value);
  }

  get count(): number {
    return this.#values.length;
  }

  at(quantile: number): number {
    this.#values.sort((a, b) => a - b);
    return this.#values[Math.min(this.count - 1, Math.floor(this.count * quantile))] ?? 0;
  }

  /** For a report, if the values are milliseconds. */
  details(): { "p50 ms": number; "p99 ms": number } {
    return { "p50 ms": this.at(0.5), "p99 ms": this.at(0.99) };
  }
}

/** Returns the median, which other work on the machine moves less than a mean. */
export const median = <T>(values: readonly T[], by: (value: T) => number): T =>
  values.toSorted((a, b) => by(a) - by(b))[Math.floor(values.length / 2)] as T;

/** Processes all items, at most `limit` at a time. */
export async function forEachConcurrently<T>(items: readonly T[], work: (item: T) => Promise<void>, limit = 16) {
  const limited = concurrencyLimiter(limit);
  await Promise.all(items.map((item) => limited(() => work(item))));
}

export type Limiter = <T>(work: () => Promise<T>) => Promise<T>;

/** Returns a function that runs work, at most `limit` pieces at a time. */
export function concurrencyLimiter(limit: number): Limiter {
  let running = 0;
  const waiting: (() => void)[] = [];
  return async (work) => {
    if (running >= limit) await new Promise<void>((resolve) => waiting.push(resolve));
    else running++;
    try {
      return await work();
    } finally {
      const next = waiting.shift();
      if (next === undefined) running--;
      else next();
    }
  };
}
