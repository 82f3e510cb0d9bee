import type { AgentSample, TelemetryStore } from "../store/telemetry-store.ts";

const MAX_AGENTS = 100_000;
const NEVER_MS = Number.NEGATIVE_INFINITY;

/** The time of an agent's newest sample, by the agent's own clock. */
interface Newest {
  /** In the store. Undefined: not known. */
  storedMs: number | undefined;
  /** Of the samples that `accept` got. */
  acceptedMs: number;
}

export interface DeduplicatorOptions {
  store: Pick<TelemetryStore, "newestSamples" | "stored">;
  /** Returns whether the agent has samples that are not stored yet. It must not be forgotten. */
  isPending(apId: string): boolean;
}

/**
 * Drops values that are already stored. Agents and bridges retry after an unknown outcome, and the per-minute sums must count a value
 * once. The key of a number is agent, metric and time; the first value with a key wins. Texts have no sums, so they are inserted again;
 * of several texts with the same key, the store keeps the last.
 *
 * A sample that is newer than all earlier samples of its agent needs no query. The others are looked up.
 */
export class Deduplicator {
  readonly #options: DeduplicatorOptions;
  readonly #newest = new Map<string, Newest>();

  constructor(options: DeduplicatorOptions) {
    this.#options = options;
  }

  /**
   * Records a sample. Returns whether it is newer than all earlier ones of its agent. The first sample after a start of the object counts as
   * newer, because the store's samples are not known yet.
   */
  accept({ apId, tsMs }: AgentSample): boolean {
    const newest = this.#newest.get(apId);
    if (newest === undefined) {
      this.#newest.set(apId, { storedMs: undefined, acceptedMs: tsMs });
      return true;
    }
    const isNewest = tsMs > Math.max(newest.storedMs ?? NEVER_MS, newest.acceptedMs);
    newest.acceptedMs = Math.max(newest.acceptedMs, tsMs);
    return isNewest;
  }

  /** Returns the samples without the numbers that are stored or that an earlier one of the samples has. Unchanged samples are the same objects. */
  async newSamples(samples: readonly AgentSample[]): Promise<AgentSample[]> {
    await this.#loadStored(samples);
    const newestMs = new Map<string, number>();
    const doubtful = samples.filter(({ apId, tsMs, metrics }) => {
      if (isEmpty(metrics)) return false;
      if (tsMs <= (newestMs.get(apId) ?? this.#storedMs(apId))) return true;
      newestMs.set(apId, tsMs);
      return false;
    });
    if (doubtful.length === 0) return [...samples];
    const seen = new SeenKeys(await this.#options.store.stored(doubtful));
    // A sample without any new value stays, empty: it records the time of receipt.
    return samples.map((sample) => {
      const entries = Object.entries(sample.metrics);
      const kept = entries.filter(([metric]) => seen.add(sample.apId, sample.tsMs, metric));
      return kept.length === entries.length ? sample : { ...sample, metrics: Object.fromEntries(kept) };
    });
  }

  /** Records samples that the store has committed. */
  committed(samples: readonly AgentSample[]): void {
    for (const { apId, tsMs } of samples) {
      const newest = this.#newest.get(apId);
      // If the store's newest sample is not known, it may be newer than this one.
      if (newest?.storedMs !== undefined) newest.storedMs = Math.max(newest.storedMs, tsMs);
    }
    if (this.#newest.size <= MAX_AGENTS) return;
    for (const apId of this.#newest.keys()) if (!this.#options.isPending(apId)) this.#newest.delete(apId);
  }

  async #loadStored(samples: readonly AgentSample[]): Promise<void> {
    const unknown = new Set<string>();
    for (const { apId } of samples) if (this.#newest.get(apId)?.storedMs === undefined) unknown.add(apId);
    if (unknown.size === 0) return;
    const stored = await this.#options.store.newestSamples([...unknown]);
    for (const apId of unknown) {
      const acceptedMs = this.#newest.get(apId)?.acceptedMs ?? NEVER_MS;
      this.#newest.set(apId, { storedMs: stored.get(apId) ?? NEVER_MS, acceptedMs });
    }
  }

  #storedMs(apId: string): number {
    return this.#newest.get(apId)?.storedMs ?? NEVER_MS;
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

function isEmpty(fields: object): boolean {
  for (const _ in fields) return false;
  return true;
}
