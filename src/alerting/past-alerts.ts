import { DomainError, Unavailable } from "../lib/errors.ts";
import { baselineOf, type HourSum } from "../rules/baseline.ts";
import { type CutRule, cutsOf } from "../rules/cuts.ts";
import type { CompiledRule } from "../rules/evaluator.ts";
import type { Condition } from "../schemas/alerts/rule.ts";
import { isOverload } from "../storage/clickhouse.ts";
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
const MAX_ALERTS = 100_000;
const DAY_MS = 86_400_000;
const HOUR_MS = 3_600_000;

export interface PastRange extends Omit<RuleRange, "timeLimitMs"> {}

export interface PastAlerts {
  /** The alerts of each agent of the range. */
  alerts: ReplayedAlert[][];
  /** Some alerts are missing: there are too many, or too many changes. */
  isTruncated: boolean;
}

export class Evaluation {
  readonly #reader: RuleReader;
  readonly #rule: CompiledRule;
  readonly #range: PastRange;
  readonly #cuts: CutRule | undefined;
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
    this.#cuts = isPlain ? undefined : cutsOf(conditionsOf(rule));
    this.#now = now;
    this.#deadlineMs = now() + MAX_MS;
    this.#alerts = range.apIds.map(() => []);
  }

  /** Evaluates all agents. */
  async run(): Promise<PastAlerts> {
    const chunks = await this.#chunks();
    await forEachConcurrently(chunks, async (chunk) => {
      if (this.#count > MAX_ALERTS) this.#isTruncated = true;
      else if (this.#cuts !== undefined) await this.#fromChanges(chunk, this.#cuts);
      else await this.#fromReports(chunk);
    });
    return { alerts: this.#alerts, isTruncated: this.#isTruncated };
  }

  /** Sets the values of alerts that were evaluated without values. */
  async addValues(alerts: readonly { agent: number; alert: ReplayedAlert }[]): Promise<void> {
    if (this.#cuts === undefined) return;
    const byAgent = [...Map.groupBy(alerts, ({ agent }) => agent)];
    await forEachConcurrently([...chunksOf(byAgent, this.#agentsPerQuery(1))], async (chunk) => {
      const range = this.#part(chunk.map(([agent]) => agent));
      const moments = chunk.map(([, ofAgent]) => ofAgent.map(({ alert }) => alert.firedMs));
      const metrics = await Promise.all(
        this.#rule.metrics.map((metric) => this.#ask(() => this.#reader.valuesAt(range, metric, moments))),
      );
      for (const [i, [, ofAgent]] of chunk.entries()) {
        for (const [j, { alert }] of ofAgent.entries()) {
          const values = metrics.map((found) => found[i]?.[j] ?? null);
          const reportedMs = alert.reportedMs ?? undefined;
          const facts = { atMs: alert.firedMs, reportedMs, values, rates: [], baseline: undefined };
          alert.value = this.#rule.condition.value(facts);
        }
      }
    });
  }

  async #fromChanges(agents: readonly number[], cuts: CutRule): Promise<void> {
    const range = this.#part(agents);
    const found = await this.#ask(() => this.#reader.changes(range, cuts));
    for (const [i, changes] of found.entries()) {
      if (changes.completeUntilMs !== undefined) this.#isTruncated = true;
      this.#add(agents[i], replayChanges(this.#rule, cuts, changes, range.toMs));
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
    const days = Math.max(...this.#rule.needs.baselineDays);
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
    if (this.#cuts !== undefined && this.#range.resolution === "minutes")
      return [...chunksOf(all, this.#agentsPerQuery(this.#cuts.cuts.size + 1))];
    const counts = await this.#counts(all);
    const total = counts.reduce((sum, count) => sum + count, 0);
    if (this.#cuts === undefined && total > MAX_ROWS) throw tooLarge();
    const maxRows = this.#cuts === undefined ? ROWS_PER_PAGE - 1 : MAX_VALUES_PER_QUERY;
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
      throw error instanceof Unavailable && isOverload(error.cause) ? tooLarge() : error;
    }
  }
}

const tooLarge = () =>
  new DomainError(
    "too_large",
    "The backtest takes too long. Choose a shorter period, fewer agents or the resolution minutes",
  );

const conditionsOf = ({ spec }: CompiledRule): Condition[] =>
  spec.clear.condition === undefined ? [spec.condition] : [spec.condition, spec.clear.condition];

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

async function forEachConcurrently<T>(items: readonly T[], work: (item: T) => Promise<void>): Promise<void> {
  const rest = items.values();
  const worker = async () => {
    for (const item of rest) await work(item);
  };
  await Promise.all(Array.from({ length: Math.min(CONCURRENCY, items.length) }, worker));
}

function* chunksOf<T>(items: readonly T[], size: number): Generator<T[]> {
  for (let i = 0; i < items.length; i += size) yield items.slice(i, i + size);
}
