import type { Sample } from "../samples.ts";
import { MetricSeries } from "./metric-series.ts";

/**
 * Keeps the last minutes of watched agents in memory. An agent is watched from its first read on; its earlier points are loaded from the
 * store. Beyond the memory limit, the least recently read agents are dropped.
 */
export interface LiveWindowOptions {
  /** Length of the window. */
  spanMs: number;
  maxBytes: number;
  now: () => number;
}

/** Estimated size of an agent's name and its empty map. */
const AGENT_BYTES = 256;

export class LiveWindow {
  readonly #options: LiveWindowOptions;
  /** Agent → metric → series, in the order of the agents' last reads. */
  readonly #watched = new Map<string, Map<string, MetricSeries>>();
  #bytes = 0;

  constructor(options: LiveWindowOptions) {
    this.#options = options;
  }

  get bytes(): number {
    return this.#bytes;
  }

  has(apId: string): boolean {
    return this.#watched.has(apId);
  }

  /** Keeps the agent's samples from now on. Call it before reading the earlier points from the store, so that none is missed. */
  watch(apId: string): void {
    this.#watched.set(apId, new Map());
    this.#enforceLimit();
  }

  /** Stops watching the agent and drops its points. */
  forget(apId: string): void {
    for (const series of this.#watched.get(apId)?.values() ?? []) this.#bytes -= series.bytes;
    this.#watched.delete(apId);
  }

  /** Adds a sample, if its agent is watched. Of several values with the same time, the first one stays. */
  add(apId: string, { tsMs, metrics }: Sample): void {
    const agentSeries = this.#watched.get(apId);
    if (agentSeries === undefined || tsMs < this.#startMs) return;
    for (const [metric, value] of Object.entries(metrics)) this.#put(agentSeries, metric, tsMs, value);
    this.#enforceLimit();
  }

  /** Adds points from the store, if the agent is still watched. They replace values of the same time: the store got them first. */
  fill(apId: string, points: Iterable<{ metric: string; tsMs: number; value: number }>): void {
    const agentSeries = this.#watched.get(apId);
    if (agentSeries === undefined) return;
    for (const { metric, tsMs, value } of points) this.#put(agentSeries, metric, tsMs, value, "replace");
    this.#enforceLimit();
  }

  /**
   * Returns the points of a watched agent, one JSON text for each metric. Returns `undefined` if the agent is not watched, or if a metric
   * has more than `maxPoints`.
   */
  read(
    apId: string,
    metrics: readonly string[],
    range: { fromMs: number; toMs: number },
    maxPoints: number,
  ): string[] | undefined {
    const agentSeries = this.#watched.get(apId);
    if (agentSeries === undefined) return undefined;
    this.#watched.delete(apId);
    this.#watched.set(apId, agentSeries);
    this.#dropEmpty(agentSeries);
    const jsonTexts: string[] = [];
    for (const metric of metrics) {
      const series = agentSeries.get(metric);
      const json = series === undefined ? "[]" : this.#update(series, () => series.toJson(range, maxPoints));
      if (json === undefined) return undefined;
      jsonTexts.push(json);
    }
    this.#enforceLimit();
    return jsonTexts;
  }

  get #startMs(): number {
    return this.#options.now() - this.#options.spanMs;
  }

  #put(
    agentSeries: Map<string, MetricSeries>,
    metric: string,
    tsMs: number,
    value: number,
    existing?: "keep" | "replace",
  ): void {
    const series = agentSeries.get(metric) ?? new MetricSeries();
    if (!agentSeries.has(metric)) {
      agentSeries.set(metric, series);
      this.#bytes += series.bytes;
    }
    this.#update(series, () => series.put(tsMs, value, existing));
  }

  /** Drops series without points. Metric names may contain names of client devices, so old names would accumulate. */
  #dropEmpty(agentSeries: Map<string, MetricSeries>): void {
    for (const [metric, series] of agentSeries) {
      this.#update(series, () => {});
      if (!series.isEmpty) continue;
      agentSeries.delete(metric);
      this.#bytes -= series.bytes;
    }
  }

  /** Drops the series' old points, runs the work, and updates the byte count. */
  #update<T>(series: MetricSeries, work: () => T): T {
    const bytesBefore = series.bytes;
    series.dropBefore(this.#startMs);
    const result = work();
    this.#bytes += series.bytes - bytesBefore;
    return result;
  }

  #enforceLimit(): void {
    for (const apId of this.#watched.keys()) {
      if (this.#bytes + this.#watched.size * AGENT_BYTES <= this.#options.maxBytes) return;
      this.forget(apId);
    }
  }
}
