import { waitUntil } from "cloudflare:workers";
import { describeError, log } from "../lib/log.ts";
import { BUCKETS_MS, type Histogram } from "./catalog.ts";
import type { Ledger } from "./ledger.ts";

/**
 * What has been counted here since it was last handed over. On Cloudflare a service runs in many isolates, none of which knows of the
 * others: each hands its increments to the one ledger, with the first event after half a minute and behind the back of whoever
 * caused it; a scrape asks for what there is. So an isolate loses at most the half minute before its end.
 */
export interface MetricRecorderOptions {
  ledger: Pick<Ledger, "add">;
  now: () => number;
}

/** Each time is a write to a disk, for which everybody waits on a machine with one thread. */
const HAND_OVER_EVERY_MS = 30_000;

export class MetricRecorder {
  readonly #options: MetricRecorderOptions;
  #increments = new Map<string, number>();
  #handedOverMs = Number.NEGATIVE_INFINITY;

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
    // Clocks differ: what seems to have arrived in the future took no time.
    this.add(sum, Math.max(0, ms));
  }

  flushIfDue(nowMs = this.#options.now()): void {
    if (nowMs - this.#handedOverMs >= HAND_OVER_EVERY_MS) waitUntil(this.flush());
  }

  /** Never fails: what could not be handed over is kept for the next time. */
  async flush(): Promise<void> {
    this.#handedOverMs = this.#options.now();
    const increments = this.#increments;
    if (increments.size === 0) return;
    this.#increments = new Map();
    try {
      await this.#options.ledger.add(increments);
    } catch (error) {
      for (const [series, by] of increments) this.add(series, by);
      log.warn("figures not handed over", { error: describeError(error) });
    }
  }
}
