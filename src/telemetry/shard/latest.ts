import type { AgentSample } from "../store/telemetry-store.ts";

/** Metrics that every kind of access point has, and that an overview shows. */
const METRICS = ["load", "quality", "users"] as const;
type Metric = (typeof METRICS)[number];

/** An agent's latest value of each of them. */
export type LatestMetrics = Record<Metric, number | null>;

/** Those of many agents, column by column: ten thousand objects take ten times as long from one place to another. */
export type LatestColumns = { apIds: string[] } & Record<Metric, (number | null)[]>;

export interface LatestCacheOptions {
  /** What is older is not worth showing. */
  spanMs: number;
  maxAgents: number;
  now: () => number;
}

type Points = Partial<Record<Metric, { tsMs: number; value: number }>>;

/** The latest values of all agents, in memory: what came before it began is unknown. */
export class LatestCache {
  readonly #options: LatestCacheOptions;
  /** In the order in which they were last heard of. */
  readonly #agents = new Map<string, Points>();

  constructor(options: LatestCacheOptions) {
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
