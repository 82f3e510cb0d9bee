import { DomainError, Unavailable } from "../lib/errors.ts";
import { baselineOf, type HourSum } from "../rules/baseline.ts";
import type { CompiledRule } from "../rules/evaluator.ts";
import { explainedBy, type LeafRule, toLeafRule } from "../rules/leaves.ts";
import { isOverload } from "../storage/clickhouse-errors.ts";
import { hasChanges } from "../telemetry/store/rule-changes.ts";
import { MAX_AGENTS_PER_QUERY, MINUTE_MS, type RuleRange } from "../telemetry/store/rule-range.ts";
import type { RuleReader } from "../telemetry/store/rule-reader.ts";
import type { ReportColumns, ReportsQuery } from "../telemetry/store/rule-reports.ts";
import { Replay, type ReplayedAlert, replayChanges } from "./replay.ts";

/** Evaluates a rule for many agents over a past period, with bounded memory and time. */

/** Time for all queries of a backtest. The client of ClickHouse gives up after 30 s. */
const MAX_MS = 25_000;
/** Queries of one backtest at the same time. ClickHouse computes parts of each with one thread. */
const CONCURRENCY = 4;
/** Values that ClickHouse holds in memory for one query. */
const MAX_VALUES_PER_QUERY = 4_000_000;
/** Rows of reports in one response. */
const ROWS_PER_PAGE = 100_000;
/** Rows of reports in all. JavaScript evaluates about a million per second. */
const MAX_ROWS = 5_000_000;
/** Times in one query. The server's limit for one parameter is 128 KiB. */
const MAX_MOMENTS = 5_000;
const MAX_ALERTS = 100_000;
const DAY_MS = 86_400_000;
const HOUR_MS = 3_600_000;

export type PastRange = Omit<RuleRange, "timeLimitMs">;

export interface PastAlerts {
  /** The alerts of each agent of the range. */
  alerts: ReplayedAlert[][];
  /** Some alerts are missing: there are too many, or too many changes. */
  isTruncated: boolean;
}

/** An alert and the index of its agent in the range. */
export interface ListedAlert {
  agent: number;
  alert: ReplayedAlert;
}

export class Evaluation {
  readonly #reader: RuleReader;
  readonly #rule: CompiledRule;
  readonly #range: PastRange;
  /** Set if the changes of its comparisons are enough. */
  readonly #leafRule: LeafRule | undefined;
  readonly #now: () => number;
  readonly #deadlineMs: number;
  readonly #alerts: ReplayedAlert[][];
  #count = 0;
  #isTruncated = false;

  /** @param isPlain reads every report, even if changes are enough */
  constructor(reader: RuleReader, rule: CompiledRule, range: PastRange, { now = Date.now, isPlain = false } = {}) {
    this.#reader = reader;
    this.#rule = rule;
    this.#range = range;
    const leafRule = isPlain ? undefined : toLeafRule(rule.spec);
    if (leafRule !== undefined && hasChanges(leafRule, range)) this.#leafRule = leafRule;
    this.#now = now;
    this.#deadlineMs = now() + MAX_MS;
    this.#alerts = range.apIds.map(() => []);
  }

  /** Evaluates all agents. */
  async run(): Promise<PastAlerts> {
    const chunks = await this.#chunks();
    await forEachConcurrently(chunks, async (chunk) => {
      if (this.#count > MAX_ALERTS) this.#isTruncated = true;
      else if (this.#leafRule !== undefined) await this.#fromChanges(chunk, this.#leafRule);
      else await this.#fromReports(chunk);
    });
    return { alerts: this.#alerts, isTruncated: this.#isTruncated };
  }

  /** Sets the values of alerts, which are in the order of time, if they were evaluated from changes. */
  async addValues(alerts: readonly ListedAlert[]): Promise<void> {
    const rule = this.#leafRule;
    if (rule === undefined) return;
    const byMetric = Map.groupBy(alerts, ({ alert }) => explainedBy(rule, alert.value)?.metric);
    for (const [metric, explained] of byMetric) {
      if (metric === undefined) continue;
      for (const part of chunksOf(explained, MAX_MOMENTS)) await this.#addValuesOf(metric, part);
    }
  }

  async #addValuesOf(metric: string, alerts: readonly ListedAlert[]): Promise<void> {
    const byAgent = [...Map.groupBy(alerts, ({ agent }) => agent)];
    await forEachConcurrently([...chunksOf(byAgent, this.#agentsPerQuery(1))], async (chunk) => {
      const moments = chunk.map(([, ofAgent]) => ofAgent.map(({ alert }) => alert.firedMs));
      // Only the earliest alerts are listed, so this is often a small part of the period.
      const toMs = moments.flat().reduce((last, ms) => Math.max(last, ms), this.#range.fromMs);
      const range = { ...this.#part(chunk.map(([agent]) => agent)), toMs };
      const values = await this.#ask(() => this.#reader.valuesAt(range, metric, moments));
      for (const [i, [, ofAgent]] of chunk.entries())
        for (const [j, { alert }] of ofAgent.entries()) alert.value = values[i]?.[j];
    });
  }

  async #fromChanges(agents: readonly number[], rule: LeafRule): Promise<void> {
    const range = this.#part(agents);
    const found = await this.#ask(() => this.#reader.changes(range, rule));
    for (const [i, changes] of found.entries()) {
      if (changes.completeUntilMs !== undefined) this.#isTruncated = true;
      this.#add(agents[i], replayChanges(rule, changes, range.toMs));
    }
  }

  async #fromReports(agents: readonly number[]): Promise<void> {
    const range = this.#part(agents);
    const { metrics } = this.#rule;
    const baselines = await this.#baselines(range);
    const replays = agents.map(() => new Replay(this.#rule));
    const query = { ...range, metrics, includesAll: this.#needsAllReports, limit: ROWS_PER_PAGE };
    for (let fromMs: number | undefined = range.fromMs; fromMs !== undefined; ) {
      const page: ReportsQuery = { ...query, fromMs, timeLimitMs: this.#leftMs() };
      const rows = await this.#ask(() => this.#reader.reports(page));
      // The last report of a full page may lack metrics: the next page begins with it.
      const nextMs = rows.at.length < ROWS_PER_PAGE ? undefined : rows.at.at(-1);
      if (nextMs !== undefined && agents.length > 1) {
        // More rows than counted. The pages of one agent are in the order of time.
        for (const agent of agents) await this.#fromReports([agent]);
        return;
      }
      for (const { agent, atMs, values } of reportsIn(rows, metrics)) {
        if (atMs !== nextMs) replays[agent]?.observe({ atMs, metrics: values, baseline: baselines?.(agent) });
      }
      fromMs = nextMs;
    }
    for (const [i, replay] of replays.entries()) {
      replay.observe({ atMs: range.toMs, baseline: baselines?.(i) });
      this.#add(agents[i], replay.alerts);
    }
  }

  /** Returns the lookups of the agents of a range. */
  async #baselines(range: RuleRange) {
    if (!this.#rule.hasBaseline) return undefined;
    const days = Math.max(...this.#rule.needs.means.map((mean) => mean.days));
    const fromMs = Math.floor(range.fromMs / HOUR_MS) * HOUR_MS - days * DAY_MS;
    const byMetric = new Map<string, Map<number, HourSum>[]>();
    for (const metric of this.#rule.metrics) {
      const sums = range.apIds.map(() => new Map<number, HourSum>());
      const hours = await this.#ask(() => this.#reader.hours({ ...range, fromMs }, metric));
      for (const { agent, hour, ...sum } of hours) sums[agent]?.set(hour, sum);
      byMetric.set(metric, sums);
    }
    return (agent: number) => (metric: string, lookback: number, atMs: number) => {
      const sums = byMetric.get(metric)?.[agent];
      return sums && baselineOf(sums, lookback, atMs);
    };
  }

  #add(agent: number | undefined, alerts: ReplayedAlert[]): void {
    if (agent === undefined) return;
    this.#alerts[agent] = alerts;
    this.#count += alerts.length;
  }

  /** Divides the agents so that each query stays small. */
  async #chunks(): Promise<number[][]> {
    const all = this.#range.apIds.map((_, i) => i);
    const rule = this.#leafRule;
    if (rule !== undefined && this.#range.resolution === "minutes")
      return [
        ...chunksOf(all, this.#agentsPerQuery(this.#rule.metrics.length + (rule.absenceMs === undefined ? 0 : 1))),
      ];
    const counts = await this.#counts(all);
    const total = counts.reduce((sum, count) => sum + count, 0);
    if (rule === undefined && total > MAX_ROWS) throw tooLarge();
    const maxRows = rule === undefined ? ROWS_PER_PAGE - 1 : MAX_VALUES_PER_QUERY;
    const chunks: number[][] = [];
    let rows = Infinity;
    for (const agent of all) {
      const count = counts[agent] ?? 0;
      const last = chunks.at(-1);
      if (last !== undefined && rows + count <= maxRows && last.length < MAX_AGENTS_PER_QUERY) {
        last.push(agent);
        rows += count;
      } else {
        chunks.push([agent]);
        rows = count;
      }
    }
    return chunks;
  }

  async #counts(all: readonly number[]): Promise<number[]> {
    const counts = all.map(() => 0);
    await forEachConcurrently([...chunksOf(all, MAX_AGENTS_PER_QUERY)], async (agents) => {
      const query = { ...this.#part(agents), metrics: this.#rule.metrics, includesAll: this.#needsAllReports };
      const found = await this.#ask(() => this.#reader.countReports(query));
      for (const [i, agent] of agents.entries()) counts[agent] = found[i] ?? 0;
    });
    return counts;
  }

  get #needsAllReports(): boolean {
    return this.#rule.needs.absencesMs.length > 0;
  }

  #agentsPerQuery(series: number): number {
    const minutes = (this.#range.toMs - this.#range.fromMs) / MINUTE_MS + 1;
    return Math.min(MAX_AGENTS_PER_QUERY, Math.max(1, Math.floor(MAX_VALUES_PER_QUERY / minutes / series)));
  }

  #part(agents: readonly number[]): RuleRange {
    const apIds = agents.map((agent) => this.#range.apIds[agent] ?? "");
    return { ...this.#range, apIds, timeLimitMs: this.#leftMs() };
  }

  #leftMs(): number {
    const leftMs = this.#deadlineMs - this.#now();
    if (leftMs <= 0) throw tooLarge();
    return leftMs;
  }

  async #ask<T>(query: () => Promise<T>): Promise<T> {
    try {
      return await query();
    } catch (error) {
      // If ClickHouse stops a query that has begun to respond, it only closes the connection.
      const isTimeout = error instanceof Unavailable && (isOverload(error.cause) || this.#now() >= this.#deadlineMs);
      throw isTimeout ? tooLarge() : error;
    }
  }
}

const tooLarge = () =>
  new DomainError(
    "too_large",
    "The backtest takes too long. Choose a shorter period, fewer agents or the resolution minutes",
  );

function* reportsIn({ agent, at, metric, value }: ReportColumns, metrics: readonly string[]) {
  for (let i = 0; i < at.length; ) {
    const report = { agent: agent[i] ?? 0, atMs: at[i] ?? 0, values: {} as Record<string, number> };
    for (; agent[i] === report.agent && at[i] === report.atMs; i++) {
      const name = metrics[metric[i] ?? -1];
      if (name !== undefined) report.values[name] = value[i] ?? 0;
    }
    yield report;
  }
}

/** Runs work for each item, and starts no more of it after an error. */
async function forEachConcurrently<T>(items: readonly T[], work: (item: T) => Promise<void>): Promise<void> {
  const rest = [...items];
  const worker = async () => {
    try {
      for (let item = rest.shift(); item !== undefined; item = rest.shift()) await work(item);
    } finally {
      rest.length = 0;
    }
  };
  await Promise.all(Array.from({ length: Math.min(CONCURRENCY, items.length) }, worker));
}

function* chunksOf<T>(items: readonly T[], size: number): Generator<T[]> {
  for (let i = 0; i < items.length; i += size) yield items.slice(i, i + size);
}
