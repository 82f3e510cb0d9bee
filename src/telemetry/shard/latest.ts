import type { AgentSample } from "../store/telemetry-store.ts";

/** The metrics of the overview. Every kind of access point has them. */
const METRICS = ["load", "quality", "users"] as const;
type Metric = (typeof METRICS)[number];

/** An agent's latest value of each metric. */
export type LatestMetrics = Record<Metric, number | null>;

/** The latest values of many agents, as columns: an RPC call with one object per agent takes ten times as long. */
export type LatestColumns = { apIds: string[] } & Record<Metric, (number | null)[]>;

export interface LatestCacheOptions {
  /** Maximum age of a value. Older ones are dropped. */
  spanMs: number;
  maxAgents: number;
  now: () => number;
}

type Points = Partial<Record<Metric, { tsMs: number; value: number }>>;

/** Keeps the latest values of all agents in memory. It starts empty after a restart of the object. */
export class LatestCache {
  readonly #options: LatestCacheOptions;
  /** In the order of their last changes. */
  readonly #agents = new Map<string, Points>();

  constructor(options: LatestCacheOptions) {
    this.#options = options;
  }

  /** Adds committed samples, in any order. */
  add(samples: readonly AgentSample[]): void {
    for (const { apId, tsMs, metrics } of samples) {
      const points = this.#agents.get(apId) ?? {};
      let hasChanged = false;
      for (const metric of METRICS) {
        const value = metrics[metric];
        if (value === undefined || tsMs < (points[metric]?.tsMs ?? Number.NEGATIVE_INFINITY)) continue;
        points[metric] = { tsMs, value };
        hasChanged = true;
      }
      if (!hasChanged) continue;
      this.#agents.delete(apId);
      this.#agents.set(apId, points);
    }
    for (const apId of this.#agents.keys()) {
      if (this.#agents.size <= this.#options.maxAgents) return;
      this.#agents.delete(apId);
    }
  }

  /** Returns the values of every agent that has any. Drops the agents whose values are all too old. */
  read(): LatestColumns {
    const sinceMs = this.#options.now() - this.#options.spanMs;
    const columns: LatestColumns = { apIds: [], load: [], quality: [], users: [] };
    for (const [apId, points] of this.#agents) {
      if (METRICS.every((metric) => (points[metric]?.tsMs ?? Number.NEGATIVE_INFINITY) < sinceMs)) {
        this.#agents.delete(apId);
        continue;
      }
      columns.apIds.push(apId);
      for (const metric of METRICS) {
        const point = points[metric];
        columns[metric].push(point === undefined || point.tsMs < sinceMs ? null : point.value);
      }
    }
    return columns;
  }
}
