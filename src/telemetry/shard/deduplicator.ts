import type { AgentSample, TelemetryStore } from "../store/telemetry-store.ts";

const MAX_AGENTS = 100_000;
const NEVER_MS = Number.NEGATIVE_INFINITY;

/**
 * Tells which values of a batch are not stored yet. Agents and bridges send again what they are not sure of; sums over minutes must
 * count it once all the same. A number is named by its agent, metric and time, and the first one stays. Texts are not counted: they
 * go in again, and of those under one name and time the store keeps the last.
 *
 * A sample that is newer than anything of its agent is new without a question; only the others are looked up.
 */
export class Deduplicator {
  readonly #store: Pick<TelemetryStore, "newestSamples" | "stored">;
  /** The time of the newest sample of each agent that is stored. */
  readonly #newestMs = new Map<string, number>();

  constructor(store: Pick<TelemetryStore, "newestSamples" | "stored">) {
    this.#store = store;
  }

  async only(samples: readonly AgentSample[]): Promise<AgentSample[]> {
    await this.#learn(samples);
    const newestMs = new Map<string, number>();
    const isSure = samples.map(({ apId, tsMs }) => {
      if (tsMs <= (newestMs.get(apId) ?? this.#newestOf(apId))) return false;
      newestMs.set(apId, tsMs);
      return true;
    });
    if (isSure.every(Boolean)) return [...samples];
    const known = new Known(await this.#store.stored(samples.filter((_, i) => !isSure[i])));
    // A sample of which nothing is new stays, without values: its agent was heard of.
    return samples.map((sample) => {
      const metrics: Record<string, number> = {};
      for (const [metric, value] of Object.entries(sample.metrics)) {
        if (known.add(sample.apId, sample.tsMs, metric)) metrics[metric] = value;
      }
      return { ...sample, metrics };
    });
  }

  committed(samples: readonly AgentSample[]): void {
    if (this.#newestMs.size > MAX_AGENTS) this.#newestMs.clear();
    for (const { apId, tsMs } of samples) {
      const newestMs = this.#newestMs.get(apId);
      // Of an agent that was forgotten, the store may have newer samples than these.
      if (newestMs !== undefined && tsMs > newestMs) this.#newestMs.set(apId, tsMs);
    }
  }

  /** To be called when it is not sure what is stored. */
  forget(samples: readonly AgentSample[]): void {
    for (const { apId } of samples) this.#newestMs.delete(apId);
  }

  async #learn(samples: readonly AgentSample[]): Promise<void> {
    const unknown = new Set<string>();
    for (const { apId } of samples) if (!this.#newestMs.has(apId)) unknown.add(apId);
    if (unknown.size === 0) return;
    const newest = await this.#store.newestSamples([...unknown]);
    for (const apId of unknown) this.#newestMs.set(apId, newest.get(apId) ?? NEVER_MS);
  }

  #newestOf(apId: string): number {
    return this.#newestMs.get(apId) ?? NEVER_MS;
  }
}

class Known {
  readonly #names: Set<string>;

  constructor(values: readonly { apId: string; tsMs: number; metric: string }[]) {
    this.#names = new Set(values.map(({ apId, tsMs, metric }) => nameOf(apId, tsMs, metric)));
  }

  /** Whether it was not known before. */
  add(apId: string, tsMs: number, metric: string): boolean {
    const before = this.#names.size;
    return this.#names.add(nameOf(apId, tsMs, metric)).size > before;
  }
}

/** Neither an agent's name nor a number has a blank in it. */
const nameOf = (apId: string, tsMs: number, metric: string): string => `${apId} ${tsMs} ${metric}`;
