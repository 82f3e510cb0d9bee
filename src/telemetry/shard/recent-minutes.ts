import type { AgentSample } from "../store/telemetry-store.ts";

/** Sums of the samples of one metric in one minute, as columns: an RPC call with one object per agent takes ten times as long. */
export interface MinuteSums {
  metric: string;
  minuteMs: number;
  /** Index into the names of the result. */
  agents: Uint32Array;
  counts: Float64Array;
  totals: Float64Array;
}

export interface RecentSums {
  /** All committed samples from this time on are included. The store has the earlier ones. */
  completeFromMs: number;
  apIds: string[];
  sums: MinuteSums[];
}

export interface RecentMinutesOptions {
  /** Full minutes that are kept, before the current one. */
  minutes: number;
  /** How far ahead of the clock a sample may be. */
  maxAheadMs: number;
  /** Memory, in bytes, estimated. Beyond it, all minutes are dropped. */
  maxBytes: number;
  now: () => number;
}

/** The sums of one agent in one minute. */
interface AgentSums {
  /** Numbers of the metrics, in the order of the agent's first sample. */
  metrics: Uint32Array;
  /** Count and total of each metric. */
  sums: Float64Array;
}

/** Numbers of metrics belong to one minute: names may contain names of client devices, so old names would accumulate. */
interface Minute {
  metricNumbers: Map<string, number>;
  agents: Map<string, AgentSums>;
}

const MINUTE_MS = 60_000;
/** Estimated bytes of an agent's entry, of one of its metrics, and of a metric's name. */
const AGENT_BYTES = 200;
const METRIC_BYTES = 20;
const NAME_BYTES = 80;

/** Keeps the sums of the last minutes of all agents in memory, for aggregates over many agents. */
export class RecentMinutes {
  readonly #options: RecentMinutesOptions;
  /** By minute since the epoch. */
  readonly #minutes = new Map<number, Minute>();
  #completeFrom: number;
  #bytes = 0;

  constructor(options: RecentMinutesOptions) {
    this.#options = options;
    this.#completeFrom = this.#firstUntouched();
  }

  get bytes(): number {
    return this.#bytes;
  }

  /** All samples from this time on are included. */
  get completeFromMs(): number {
    this.#dropOld();
    return this.#completeFrom * MINUTE_MS;
  }

  /** Adds committed samples. */
  add(samples: readonly AgentSample[]): void {
    this.#dropOld();
    for (const sample of samples) {
      const minute = Math.floor(sample.tsMs / MINUTE_MS);
      if (minute >= this.#completeFrom) this.#put(minute, sample);
    }
    if (this.#bytes > this.#options.maxBytes) this.#drop(this.#firstUntouched());
  }

  /** Drops the minutes of samples that may have been committed or not. */
  forget(samples: readonly AgentSample[]): void {
    const last = samples.reduce((latest, { tsMs }) => Math.max(latest, Math.floor(tsMs / MINUTE_MS)), 0);
    this.#drop(last + 1);
  }

  /** Returns the sums of some metrics from a time on. */
  read(metrics: readonly string[], fromMs: number): RecentSums {
    this.#dropOld();
    const numberOf = new Map<string, number>();
    const result: RecentSums = { completeFromMs: this.#completeFrom * MINUTE_MS, apIds: [], sums: [] };
    const agentNumber = (apId: string): number => {
      const known = numberOf.get(apId);
      if (known !== undefined) return known;
      numberOf.set(apId, result.apIds.length);
      return result.apIds.push(apId) - 1;
    };
    for (const [minute, { metricNumbers, agents }] of this.#minutes) {
      if (minute * MINUTE_MS < fromMs) continue;
      for (const metric of metrics) {
        const found = sumsOf(metricNumbers.get(metric), agents, agentNumber);
        if (found !== undefined) result.sums.push({ metric, minuteMs: minute * MINUTE_MS, ...found });
      }
    }
    return result;
  }

  #put(minuteNumber: number, { apId, metrics }: AgentSample): void {
    let minute = this.#minutes.get(minuteNumber);
    if (minute === undefined) {
      minute = { metricNumbers: new Map(), agents: new Map() };
      this.#minutes.set(minuteNumber, minute);
    }
    const { metricNumbers, agents } = minute;
    const names = Object.keys(metrics);
    const numbers = names.map((name) => this.#numberOf(metricNumbers, name));
    let sums = agents.get(apId);
    if (sums === undefined) {
      sums = { metrics: Uint32Array.from(numbers), sums: new Float64Array(2 * numbers.length) };
      agents.set(apId, sums);
      this.#bytes += AGENT_BYTES + METRIC_BYTES * numbers.length;
    }
    for (const [i, number] of numbers.entries()) {
      // Most samples of an agent have the same metrics in the same order.
      let at = sums.metrics[i] === number ? i : sums.metrics.indexOf(number);
      if (at === -1) {
        at = sums.metrics.length;
        sums = withMetric(sums, number);
        agents.set(apId, sums);
        this.#bytes += METRIC_BYTES;
      }
      sums.sums[2 * at] = (sums.sums[2 * at] ?? 0) + 1;
      sums.sums[2 * at + 1] = (sums.sums[2 * at + 1] ?? 0) + (metrics[names[i] ?? ""] ?? 0);
    }
  }

  #numberOf(metricNumbers: Map<string, number>, name: string): number {
    const known = metricNumbers.get(name);
    if (known !== undefined) return known;
    metricNumbers.set(name, metricNumbers.size);
    this.#bytes += NAME_BYTES + name.length;
    return metricNumbers.size - 1;
  }

  /** The first minute for which neither this object nor an earlier instance of it can have committed a sample. */
  #firstUntouched(): number {
    const { now, maxAheadMs } = this.#options;
    return Math.floor((now() + maxAheadMs) / MINUTE_MS) + 1;
  }

  #dropOld(): void {
    this.#drop(Math.floor(this.#options.now() / MINUTE_MS) - this.#options.minutes);
  }

  /** Drops all minutes before this one. */
  #drop(before: number): void {
    if (before <= this.#completeFrom) return;
    this.#completeFrom = before;
    for (const [number, { metricNumbers, agents }] of this.#minutes) {
      if (number >= before) continue;
      this.#minutes.delete(number);
      for (const name of metricNumbers.keys()) this.#bytes -= NAME_BYTES + name.length;
      for (const { metrics } of agents.values()) this.#bytes -= AGENT_BYTES + METRIC_BYTES * metrics.length;
    }
  }
}

function withMetric({ metrics, sums }: AgentSums, number: number): AgentSums {
  const longer = { metrics: new Uint32Array(metrics.length + 1), sums: new Float64Array(sums.length + 2) };
  longer.metrics.set(metrics);
  longer.metrics[metrics.length] = number;
  longer.sums.set(sums);
  return longer;
}

/** Returns the sums of one metric in one minute. Undefined if no agent has it. */
function sumsOf(
  metric: number | undefined,
  agents: ReadonlyMap<string, AgentSums>,
  numberOf: (apId: string) => number,
): Pick<MinuteSums, "agents" | "counts" | "totals"> | undefined {
  if (metric === undefined) return undefined;
  const found = {
    agents: new Uint32Array(agents.size),
    counts: new Float64Array(agents.size),
    totals: new Float64Array(agents.size),
  };
  let size = 0;
  for (const [apId, { metrics, sums }] of agents) {
    const at = metrics.indexOf(metric);
    if (at === -1) continue;
    found.agents[size] = numberOf(apId);
    found.counts[size] = sums[2 * at] ?? 0;
    found.totals[size++] = sums[2 * at + 1] ?? 0;
  }
  return {
    agents: found.agents.slice(0, size),
    counts: found.counts.slice(0, size),
    totals: found.totals.slice(0, size),
  };
}
