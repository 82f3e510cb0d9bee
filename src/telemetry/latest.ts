import type { AgentSample } from "./store.ts";

/** Metrics that every kind of access point has, and that an overview shows. */
const METRICS = ["load", "quality", "users"] as const;
type Metric = (typeof METRICS)[number];

/** An agent's latest value of each of them. */
export type LatestValues = { apId: string } & Record<Metric, number | null>;

export interface LatestOptions {
  /** What is older is not worth showing. */
  spanMs: number;
  maxAgents: number;
  now: () => number;
}

type Points = Partial<Record<Metric, { tsMs: number; value: number }>>;

/** The latest values of all agents, in memory: what came before it began is unknown. */
export class Latest {
  readonly #options: LatestOptions;
  /** In the order in which they were last heard of. */
  readonly #agents = new Map<string, Points>();

  constructor(options: LatestOptions) {
    this.#options = options;
  }

  /** Samples that have been committed. They may come out of order. */
  add(samples: readonly AgentSample[]): void {
    for (const { apId, tsMs, metrics } of samples) {
      const points = this.#agents.get(apId) ?? {};
      let isNews = false;
      for (const metric of METRICS) {
        const value = metrics[metric];
        if (value === undefined || tsMs < (points[metric]?.tsMs ?? Number.NEGATIVE_INFINITY)) continue;
        points[metric] = { tsMs, value };
        isNews = true;
      }
      if (!isNews) continue;
      this.#agents.delete(apId);
      this.#agents.set(apId, points);
    }
    for (const apId of this.#agents.keys()) {
      if (this.#agents.size <= this.#options.maxAgents) return;
      this.#agents.delete(apId);
    }
  }

  /** Of every agent that has any; those that have none any more are forgotten. */
  read(): LatestValues[] {
    const sinceMs = this.#options.now() - this.#options.spanMs;
    const found: LatestValues[] = [];
    for (const [apId, points] of this.#agents) {
      const values: LatestValues = { apId, load: null, quality: null, users: null };
      let hasAny = false;
      for (const metric of METRICS) {
        const point = points[metric];
        if (point === undefined || point.tsMs < sinceMs) continue;
        values[metric] = point.value;
        hasAny = true;
      }
      if (hasAny) found.push(values);
      else this.#agents.delete(apId);
    }
    return found;
  }
}
