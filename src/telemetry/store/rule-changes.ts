import * as z from "zod";
import type { Leaf, LeafRule } from "../../rules/leaves.ts";
import { column, IN_RANGE, type RunQuery } from "./clickhouse-query.ts";
import { minutesQuery, usualMeans } from "./rule-minutes.ts";
import { AGENT, OF_AGENTS, type RuleRange, settingsOf } from "./rule-range.ts";

/**
 * Reads when the results of a rule's comparisons change, and when agents begin and stop to report. This gives the same transitions as all
 * samples, and most samples stay in ClickHouse.
 */

/** The results of the comparisons of one metric, from a time on. */
export interface LeafChange {
  atMs: number;
  /** One bit for each comparison of the metric, in the order of the rule. */
  results: number;
}

export interface MetricChanges {
  /** Indexes of the comparisons in the rule. */
  leaves: number[];
  /** In the order of time. */
  changes: LeafChange[];
}

export interface AgentChanges {
  metrics: MetricChanges[];
  /** Periods in which the agent reports without a long pause. Empty if the rule has no absence. */
  periods: { fromMs: number; toMs: number }[];
  /** Set if there are too many changes: those after this time are missing. */
  completeUntilMs: number | undefined;
}

/** Limits the response. */
const MAX_CHANGES = 20_000;
/** A key has the time and the results in one number, which is fast to sort. JavaScript has 12 bits next to a time in milliseconds. */
const MAX_LEAVES = 10;
const RESULTS = 2 ** (MAX_LEAVES + 1);
/** Differs from all results. */
const NO_RESULTS = RESULTS - 1;

const Columns = z.object({
  data: z.object({
    agent: column(z.number()),
    /** Index of the metric, -1 for periods. */
    metric: column(z.number()),
    keys: column(z.array(z.number())),
    ends: column(z.array(z.number())),
  }),
});

/** Returns whether `readChanges` can read the changes of a rule. The others need all reports. */
export const hasChanges = ({ leaves }: LeafRule, { resolution }: Pick<RuleRange, "resolution">): boolean =>
  [...byMetric(leaves).values()].every(({ length }) => length <= MAX_LEAVES) &&
  (resolution === "minutes" || leaves.every((leaf) => !("baseline" in leaf)));

const byMetric = (leaves: readonly Leaf[]): Map<string, number[]> =>
  Map.groupBy(leaves.keys(), (i) => leaves[i]?.metric ?? "");

/**
 * Returns the changes of each agent of the range, in its order.
 * @param runQuery must return the results in columns
 */
export async function readChanges(runQuery: RunQuery, range: RuleRange, rule: LeafRule): Promise<AgentChanges[]> {
  const metrics = [...byMetric(rule.leaves)].map(([name, leaves], index) => ({ name, leaves, index }));
  const queries = metrics.map(({ leaves, index }) => {
    const compared = leaves.map((i) => ({ leaf: rule.leaves[i] as Leaf, limit: `{limit_${i}:Float64}` }));
    return changesQuery(
      index,
      range.resolution === "minutes" ? minuteKeys(range, index, compared) : sampleKeys(index, compared),
    );
  });
  if (rule.absenceMs !== undefined) {
    queries.push(periodsQuery(range.resolution === "minutes" ? minutesQuery(range, "true") : SAMPLE_TIMES));
  }
  const limits = rule.leaves.map((leaf, i) => [`limit_${i}`, "value" in leaf ? leaf.value : leaf.baseline.factor]);
  const { data } = await runQuery(Columns, `${queries.join(" UNION ALL ")} ${settingsOf(range)}`, {
    ...Object.fromEntries(limits),
    ap_ids: range.apIds,
    from: range.fromMs,
    to: range.toMs,
    metrics: metrics.map(({ name }) => name),
    absence: rule.absenceMs ?? 0,
    max: MAX_CHANGES + 1,
  });
  const agents = range.apIds.map((): AgentChanges => {
    return { metrics: metrics.map(({ leaves }) => ({ leaves, changes: [] })), periods: [], completeUntilMs: undefined };
  });
  for (const [row, index] of data.agent.entries()) {
    const agent = agents[index];
    if (agent !== undefined) addRow(agent, data.metric[row] ?? -1, data.keys[row] ?? [], data.ends[row] ?? []);
  }
  return agents;
}

function addRow(agent: AgentChanges, metric: number, keys: readonly number[], ends: readonly number[]): void {
  const timeOf = (key: number) => (metric < 0 ? key : Math.floor(key / RESULTS));
  const complete = keys.slice(0, MAX_CHANGES);
  const changes = agent.metrics[metric];
  if (changes !== undefined) changes.changes = complete.map((key) => ({ atMs: timeOf(key), results: key % RESULTS }));
  else agent.periods = complete.map((fromMs, i) => ({ fromMs, toMs: ends[i] ?? fromMs }));
  const missing = keys[MAX_CHANGES];
  if (missing !== undefined) agent.completeUntilMs = Math.min(agent.completeUntilMs ?? Infinity, timeOf(missing) - 1);
}

/** Adds first, then removes: an empty array must stay empty. */
const before = (keys: string, first: string) => `arrayPopBack(arrayPushFront(${keys}, toInt64(${first})))`;

/** Selects the keys whose results differ from those of the key before. */
const changesQuery = (metric: number, keys: string): string => `
  SELECT ${AGENT}, ${metric} AS metric, CAST([], 'Array(Int64)') AS ends, arraySlice(arrayFilter(
    (key, previous) -> key % ${RESULTS} != previous % ${RESULTS}, keys, ${before("keys", String(NO_RESULTS))}
  ), 1, {max:UInt32}) AS keys
  FROM (${keys})`;

const END_OF_TIME = "1000000000000000";
/** Selects the first and the last time of each period. */
const periodsQuery = (times: string): string => `
  SELECT ${AGENT}, -1 AS metric,
    arraySlice(arrayFilter((at, next) -> next - at >= {absence:Int64}, times, arrayPopFront(arrayPushBack(times, toInt64(${END_OF_TIME})))),
      1, {max:UInt32}) AS ends,
    arraySlice(arrayFilter((at, previous) -> at - previous >= {absence:Int64}, times, ${before("times", `-${END_OF_TIME}`)}),
      1, {max:UInt32}) AS keys
  FROM (${times})`;

interface Compared {
  leaf: Leaf;
  limit: string;
}

/** Returns an expression for a time and the results of the comparisons of a value at that time. */
const keyOf = (at: string, value: string, compared: readonly Compared[]): string => {
  const results = compared.map(({ leaf, limit }, bit) => {
    const usual = "baseline" in leaf ? `${usualMeans(leaf.baseline.days)} * ` : "";
    return `(${value} ${leaf.op} ${usual}${limit}) * ${2 ** bit}`;
  });
  return `toInt64(${[`${at} * ${RESULTS}`, ...results].join(" + ")})`;
};

const nameOf = (metric: number) => `metric = {metrics:Array(String)}[${metric + 1}]`;

const minuteKeys = (range: RuleRange, metric: number, compared: readonly Compared[]): string => {
  const days = [...new Set(compared.flatMap(({ leaf }) => ("baseline" in leaf ? leaf.baseline.days : [])))];
  const arrays = ["times", "means", ...days.map(usualMeans)];
  return `
    SELECT ap_id, arrayMap((${["at", "mean", ...days.map(usualMeans)].join()}) -> ${keyOf("at", "mean", compared)}, ${arrays.join()}) AS keys
    FROM (${minutesQuery(range, nameOf(metric), days)})`;
};

const OF_PERIOD = `${OF_AGENTS} AND ${IN_RANGE}`;
const sampleKeys = (metric: number, compared: readonly Compared[]): string => `
  SELECT ap_id, arraySort(groupArray(${keyOf("toUnixTimestamp64Milli(ts)", "value", compared)})) AS keys
  FROM points_v1
  WHERE ${OF_PERIOD} AND ${nameOf(metric)}
  GROUP BY ap_id`;
const SAMPLE_TIMES = `
  SELECT ap_id, arraySort(groupArray(toUnixTimestamp64Milli(ts))) AS times
  FROM (SELECT ap_id, ts FROM points_v1 WHERE ${OF_PERIOD} UNION ALL SELECT ap_id, ts FROM texts_v1 WHERE ${OF_PERIOD})
  GROUP BY ap_id`;
