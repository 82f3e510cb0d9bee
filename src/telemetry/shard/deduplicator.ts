import type { AgentSample, TelemetryStore } from "../store/telemetry-store.ts";

const MAX_AGENTS = 100_000;
const NEVER_MS = Number.NEGATIVE_INFINITY;

/**
 * Drops values that are already stored. Agents and bridges retry after an unknown outcome, and the per-minute sums must count a value
 * once. The key of a number is agent, metric and time; the first value with a key wins. Texts have no sums, so they are inserted again;
 * of several texts with the same key, the store keeps the last.
 *
 * A sample that is newer than all stored samples of its agent needs no query. The others are looked up.
 */
export class Deduplicator {
  readonly #store: Pick<TelemetryStore, "newestSamples" | "stored">;
  /** The time of each agent's newest stored sample. */
  readonly #newestMs = new Map<string, number>();

  constructor(store: Pick<TelemetryStore, "newestSamples" | "stored">) {
    this.#store = store;
  }

  /** Returns the samples without the numbers that are already stored. */
  async newSamples(samples: readonly AgentSample[]): Promise<AgentSample[]> {
    await this.#loadNewest(samples);
    const newestMs = new Map<string, number>();
    const isNewest = samples.map(({ apId, tsMs }) => {
      if (tsMs <= (newestMs.get(apId) ?? this.#newestOf(apId))) return false;
      newestMs.set(apId, tsMs);
      return true;
    });
    if (isNewest.every(Boolean)) return [...samples];
    const seen = new SeenKeys(await this.#store.stored(samples.filter((_, i) => !isNewest[i])));
    // A sample without any new value stays, empty: it records the time of receipt.
    return samples.map((sample) => {
      const metrics: Record<string, number> = {};
      for (const [metric, value] of Object.entries(sample.metrics)) {
        if (seen.add(sample.apId, sample.tsMs, metric)) metrics[metric] = value;
      }
      return { ...sample, metrics };
    });
  }

  /** Records samples that the store has committed. */
  committed(samples: readonly AgentSample[]): void {
    if (this.#newestMs.size > MAX_AGENTS) this.#newestMs.clear();
    for (const { apId, tsMs } of samples) {
      const newestMs = this.#newestMs.get(apId);
      // For an agent that is not cached, the store may have newer samples than these.
      if (newestMs !== undefined && tsMs > newestMs) this.#newestMs.set(apId, tsMs);
    }
  }

  /** Forgets the agents of samples whose commit has an unknown outcome. */
  forget(samples: readonly AgentSample[]): void {
    for (const { apId } of samples) this.#newestMs.delete(apId);
  }

  async #loadNewest(samples: readonly AgentSample[]): Promise<void> {
    const uncached = new Set<string>();
    for (const { apId } of samples) if (!this.#newestMs.has(apId)) uncached.add(apId);
    if (uncached.size === 0) return;
    const newest = await this.#store.newestSamples([...uncached]);
    for (const apId of uncached) this.#newestMs.set(apId, newest.get(apId) ?? NEVER_MS);
  }

  #newestOf(apId: string): number {
    return this.#newestMs.get(apId) ?? NEVER_MS;
  }
}

class SeenKeys {
  readonly #keys: Set<string>;

  constructor(values: readonly { apId: string; tsMs: number; metric: string }[]) {
    this.#keys = new Set(values.map(({ apId, tsMs, metric }) => keyOf(apId, tsMs, metric)));
  }

  /** Adds a key. Returns whether it is new. */
  add(apId: string, tsMs: number, metric: string): boolean {
    const before = this.#keys.size;
    return this.#keys.add(keyOf(apId, tsMs, metric)).size > before;
  }
}

/** Unambiguous: neither an agent's name nor a number contains a space. */
const keyOf = (apId: string, tsMs: number, metric: string): string => `${apId} ${tsMs} ${metric}`;
