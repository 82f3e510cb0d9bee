import * as z from "zod";
import type { Cut, CutRule } from "../../rules/cuts.ts";
import { column, IN_RANGE, type RunQuery } from "./clickhouse-query.ts";
import { AGENT, minutesQuery, OF_AGENTS, type RuleRange, settingsOf } from "./rule-range.ts";

/**
 * Reads when metrics enter another range of values, and when agents begin and stop to report. For a rule that depends on nothing else, this
 * gives the same transitions as all samples, and most samples stay in ClickHouse.
 */

export interface AgentChanges {
  /** For each metric of the rule, the times at which it enters another range, ascending, and the number of the range. */
  metrics: { atMs: number; range: number }[][];
  /** Periods in which the agent reports without a long pause. Empty if the rule needs no absence. */
  periods: { fromMs: number; toMs: number }[];
  /** Some of its changes are missing, those after this time. */
  completeUntilMs: number | undefined;
}

/** Limits the response: an agent with more changes is not evaluated to the end. */
const MAX_CHANGES = 20_000;
/** A key is the time and the range in one number, which is fast to sort. There are at most 32 cuts. */
const RANGES = 64;

const Columns = z.object({
  data: z.object({
    agent: column(z.number()),
    /** The number of the metric, -1 for periods. */
    metric: column(z.number()),
    keys: column(z.array(z.number())),
    ends: column(z.array(z.number())),
  }),
});

/**
 * Returns the changes of each agent of the range, in its order.
 * @param runQuery must return the results in columns
 */
export async function readChanges(
  runQuery: RunQuery,
  range: RuleRange,
  { cuts, absenceMs }: CutRule,
): Promise<AgentChanges[]> {
  const metrics = [...cuts];
  const source = range.resolution === "minutes" ? minutesSource(range) : SAMPLES;
  const parts = [
    ...metrics.map(([, ofMetric], i) => source.changes(i, ofMetric)),
    ...(absenceMs === undefined ? [] : [source.periods]),
  ];
  const params: Record<string, unknown> = {
    ap_ids: range.apIds,
    from: range.fromMs,
    to: range.toMs,
    metrics: metrics.map(([name]) => name),
    absence: absenceMs ?? 0,
    max: MAX_CHANGES + 1,
  };
  for (const [i, [, ofMetric]] of metrics.entries())
    for (const [j, { value }] of ofMetric.entries()) params[cutName(i, j)] = value;
  const { data } = await runQuery(Columns, `${parts.join(" UNION ALL ")} ${settingsOf(range)}`, params);
  const agents = range.apIds.map(
    (): AgentChanges => ({ metrics: metrics.map(() => []), periods: [], completeUntilMs: undefined }),
  );
  for (const [row, index] of data.agent.entries()) {
    const agent = agents[index];
    const [metric = 0, keys = [], ends = []] = [data.metric[row], data.keys[row], data.ends[row]];
    if (agent === undefined) continue;
    const shown = keys.slice(0, MAX_CHANGES);
    if (metric < 0) agent.periods = shown.map((fromMs, i) => ({ fromMs, toMs: ends[i] ?? fromMs }));
    else agent.metrics[metric] = shown.map((key) => ({ atMs: Math.floor(key / RANGES), range: key % RANGES }));
    if (keys.length > MAX_CHANGES) {
      const last = keys[MAX_CHANGES] ?? 0;
      const lastMs = (metric < 0 ? last : Math.floor(last / RANGES)) - 1;
      agent.completeUntilMs = Math.min(agent.completeUntilMs ?? Infinity, lastMs);
    }
  }
  return agents;
}

interface Source {
  changes(metric: number, cuts: readonly Cut[]): string;
  periods: string;
}

const cutName = (metric: number, cut: number): string => `cut_${metric}_${cut}`;

/** Returns an expression for the number of cuts below a value. */
const rangeOf = (metric: number, cuts: readonly Cut[], value: string): string =>
  cuts
    .map(({ isInclusive }, i) => `(${value} ${isInclusive ? ">=" : ">"} {${cutName(metric, i)}:Float64})`)
    .join(" + ");

const shifted = (keys: string, first: string) => `arrayPushFront(arrayPopBack(${keys}), ${first})`;

/** Selects the keys whose range differs from that of the key before. No range has the number of the first one. */
const changesQuery = (metric: number, keys: string): string => `
  SELECT ${AGENT}, ${metric} AS metric, CAST([], 'Array(Int64)') AS ends, arraySlice(arrayFilter(
    (key, previous) -> key % ${RANGES} != previous % ${RANGES}, keys, ${shifted("keys", `toInt64(${RANGES - 1})`)}
  ), 1, {max:UInt32}) AS keys
  FROM (${keys})`;

/** Selects the first and the last time of each period. */
const periodsQuery = (times: string): string => `
  SELECT ${AGENT}, -1 AS metric,
    arraySlice(arrayFilter((at, next) -> next - at >= {absence:Int64}, times, arrayPushBack(arrayPopFront(times), ${END_OF_TIME})),
      1, {max:UInt32}) AS ends,
    arraySlice(arrayFilter((at, previous) -> at - previous >= {absence:Int64}, times, ${shifted("times", `-${END_OF_TIME}`)}),
      1, {max:UInt32}) AS keys
  FROM (${times})`;
const END_OF_TIME = "toInt64(1000000000000000)";

const OF_PERIOD = `${OF_AGENTS} AND ${IN_RANGE}`;
const SAMPLES: Source = {
  changes: (metric, cuts) =>
    changesQuery(
      metric,
      `SELECT ap_id, arraySort(groupArray(toUnixTimestamp64Milli(ts) * ${RANGES} + ${rangeOf(metric, cuts, "value")})) AS keys
       FROM points_v1
       WHERE ${OF_PERIOD} AND metric = {metrics:Array(String)}[${metric + 1}]
       GROUP BY ap_id`,
    ),
  periods: periodsQuery(`
    SELECT ap_id, arraySort(groupArray(toUnixTimestamp64Milli(ts))) AS times
    FROM (SELECT ap_id, ts FROM points_v1 WHERE ${OF_PERIOD} UNION ALL SELECT ap_id, ts FROM texts_v1 WHERE ${OF_PERIOD})
    GROUP BY ap_id`),
};

const minutesSource = (range: RuleRange): Source => ({
  changes: (metric, cuts) =>
    changesQuery(
      metric,
      `SELECT ap_id, arrayMap((at, mean) -> at * ${RANGES} + ${rangeOf(metric, cuts, "mean")}, times, means) AS keys
       FROM (${minutesQuery(range, `metric = {metrics:Array(String)}[${metric + 1}]`)})`,
    ),
  periods: periodsQuery(minutesQuery(range, "true")),
});
