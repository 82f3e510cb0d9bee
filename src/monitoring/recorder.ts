import { waitUntil } from "cloudflare:workers";
import { describeError, log } from "../lib/log.ts";
import { BUCKETS_MS, type Histogram } from "./catalog.ts";
import type { Ledger } from "./ledger.ts";

export interface MetricRecorderOptions {
  ledger: Pick<Ledger, "add">;
  now: () => number;
}

/** Each flush writes to disk, which blocks all requests on a machine with one thread. */
const FLUSH_INTERVAL_MS = 30_000;

/**
 * Collects the metrics of one isolate between two flushes. On Cloudflare the service runs in many isolates, which share no memory.
 * Each sends its increments to the ledger with the first event after the flush interval, without delaying the response. A scrape
 * flushes immediately. An isolate that ends loses at most the increments of one interval.
 */
export class MetricRecorder {
  readonly #options: MetricRecorderOptions;
  #increments = new Map<string, number>();
  #flushedMs = Number.NEGATIVE_INFINITY;

  constructor(options: MetricRecorderOptions) {
    this.#options = options;
  }

  add(series: string, by = 1): void {
    this.#increments.set(series, (this.#increments.get(series) ?? 0) + by);
  }

  observe({ buckets, sum }: Histogram, ms: number): void {
    let bucket = 0;
    while (ms > (BUCKETS_MS[bucket] ?? Number.POSITIVE_INFINITY)) bucket++;
    this.add(buckets[bucket] ?? "");
    // Clocks of different machines differ: a negative duration counts as zero.
    this.add(sum, Math.max(0, ms));
  }

  flushIfDue(nowMs = this.#options.now()): void {
    if (nowMs - this.#flushedMs >= FLUSH_INTERVAL_MS) waitUntil(this.flush());
  }

  /** Never throws: after a failure it keeps the increments for the next flush. */
  async flush(): Promise<void> {
    this.#flushedMs = this.#options.now();
    const increments = this.#increments;
    if (increments.size === 0) return;
    this.#increments = new Map();
    try {
      await this.#options.ledger.add(increments);
    } catch (error) {
      for (const [series, by] of increments) this.add(series, by);
      log.warn("metric flush failed", { error: describeError(error) });
    }
  }
}
