import * as z from "zod";
import { column, IN_RANGE, type RunQuery } from "./clickhouse-query.ts";
import { minutesQuery } from "./rule-minutes.ts";
import { AGENT, IN_WHOLE_MINUTES, meanOf, OF_AGENTS, type RuleRange, settingsOf } from "./rule-range.ts";

/** Reads the reports of agents as a rule sees them, and single values for the texts of alerts. */

/** The reports of some agents as columns, in the order of agent and time. A report has a row for each metric of the rule. */
export interface ReportColumns {
  /** Index of the agent in the range. */
  agent: number[];
  at: number[];
  /** Index of the metric in the rule. -1: the report has other metrics or texts. */
  metric: number[];
  value: number[];
}

export interface ReportsQuery extends RuleRange {
  metrics: readonly string[];
  /** Whether reports without these metrics count, too. */
  includesAll: boolean;
  limit: number;
}

const Columns = z.object({
  data: z.object({
    agent: column(z.number()),
    at: column(z.number()),
    metric: column(z.number()),
    value: column(z.number()),
  }),
});
const Counts = z.object({ data: z.object({ agent: column(z.number()), count: column(z.number()) }) });
const Values = z.object({
  data: z.object({ agent: column(z.number()), values: column(z.array(z.number().nullable())) }),
});
const Hours = z.object({
  data: z.object({
    agent: column(z.number()),
    hour: column(z.number()),
    n: column(z.number()),
    total: column(z.number()),
  }),
});

const OF_METRICS = "({all:Bool} OR metric IN {metrics:Array(String)})";
const METRIC = "toInt32(indexOf({metrics:Array(String)}, metric)) - 1 AS metric_index";

const SAMPLES_QUERY = `
  SELECT agent, at, metric_index AS metric, any(value) AS value
  FROM (
    SELECT ${AGENT}, toUnixTimestamp64Milli(ts) AS at, ${METRIC}, value
    FROM points_v1
    WHERE ${OF_AGENTS} AND ${OF_METRICS} AND ${IN_RANGE}
    UNION ALL
    SELECT ${AGENT}, toUnixTimestamp64Milli(ts) AS at, toInt32(-1) AS metric_index, 0. AS value
    FROM texts_v1
    WHERE {all:Bool} AND ${OF_AGENTS} AND ${IN_RANGE}
  )
  GROUP BY agent, at, metric_index
  ORDER BY agent, at, metric_index
  LIMIT {limit:UInt32}`;

const MINUTES_QUERY = `
  SELECT agent, at, metric_index AS metric, ${meanOf("sum(total)", "sum(n)")} AS value
  FROM (
    SELECT ${AGENT}, toInt64(toUnixTimestamp(minute)) * 1000 AS at, ${METRIC}, n, total
    FROM minutes_v1
    WHERE ${OF_AGENTS} AND ${OF_METRICS} AND ${IN_WHOLE_MINUTES}
  )
  GROUP BY agent, at, metric_index
  ORDER BY agent, at, metric_index
  LIMIT {limit:UInt32}`;

/** @param runQuery must return the results in columns */
export async function readReports(runQuery: RunQuery, query: ReportsQuery): Promise<ReportColumns> {
  const { resolution, metrics, includesAll, limit, apIds, fromMs, toMs } = query;
  const text = resolution === "minutes" ? MINUTES_QUERY : SAMPLES_QUERY;
  const params = { ap_ids: apIds, metrics, all: includesAll, from: fromMs, to: toMs, limit };
  return (await runQuery(Columns, `${text} ${settingsOf(query)}`, params)).data;
}

/** Returns about how many rows `readReports` has for each agent. */
export async function countReports(
  runQuery: RunQuery,
  { metrics, includesAll, ...range }: Omit<ReportsQuery, "limit">,
): Promise<number[]> {
  const { data } = await runQuery(
    Counts,
    `SELECT ${AGENT}, ${range.resolution === "minutes" ? "count()" : "sum(n)"} AS count
     FROM minutes_v1
     WHERE ${OF_AGENTS} AND ${OF_METRICS} AND ${IN_WHOLE_MINUTES}
     GROUP BY ap_id ${settingsOf(range)}`,
    { ap_ids: range.apIds, metrics, all: includesAll, from: range.fromMs, to: range.toMs },
  );
  const counts = new Map(data.agent.map((agent, i) => [agent, data.count[i] ?? 0]));
  return range.apIds.map((_, i) => counts.get(i) ?? 0);
}

/**
 * Returns the value of a metric at some times: that of the last sample until then. Undefined: there is none in the range.
 * @param momentsMs for each agent of the range, ascending
 */
export async function readValuesAt(
  runQuery: RunQuery,
  range: RuleRange,
  metric: string,
  momentsMs: readonly (readonly number[])[],
): Promise<(number | undefined)[][]> {
  const points =
    range.resolution === "minutes"
      ? `SELECT ap_id, arrayZip(times, means) AS points FROM (${minutesQuery(range, "metric = {metric:String}")})`
      : SAMPLE_POINTS;
  const params = { ap_ids: range.apIds, metric, from: range.fromMs, to: range.toMs, moments: momentsMs };
  const { data } = await runQuery(Values, `${valuesQuery(points)} ${settingsOf(range)}`, params);
  const values = new Map(data.agent.map((agent, i) => [agent, data.values[i] ?? []]));
  return momentsMs.map((moments, i) => moments.map((_, j) => values.get(i)?.[j] ?? undefined));
}

const SAMPLE_POINTS = `
  SELECT ap_id, groupArray((toUnixTimestamp64Milli(ts), value)) AS points
  FROM points_v1
  WHERE ${OF_AGENTS} AND metric = {metric:String} AND ${IN_RANGE}
  GROUP BY ap_id`;

/** Sorts the moments among the points, each after the point of its time, and gives each the value before it. Points have even keys. */
const valuesQuery = (points: string): string => `
  SELECT agent, arrayMap(one -> if(one.1 % 2 = 1, NULL, one.2), arrayFilter((one, own) -> own.1 % 2 = 1, filled, merged)) AS values
  FROM (
    SELECT agent, merged, arrayFill(one -> one.1 % 2 = 0, merged) AS filled
    FROM (
      SELECT ${AGENT}, arraySort(one -> one.1, arrayConcat(
        arrayMap(point -> (toInt64(point.1 * 2), point.2), points),
        arrayMap(at -> (toInt64(at * 2 + 1), 0.), {moments:Array(Array(Int64))}[agent + 1])
      )) AS merged
      FROM (${points})
    )
  )`;

/** The samples of an agent in one hour. `hour` counts hours from the epoch on. */
export interface AgentHour {
  agent: number;
  hour: number;
  n: number;
  total: number;
}

/** Returns the sums of all hours with samples, for `baselineOf`. */
export async function readHours(
  runQuery: RunQuery,
  range: Omit<RuleRange, "resolution">,
  metric: string,
): Promise<AgentHour[]> {
  const { data } = await runQuery(
    Hours,
    `SELECT ${AGENT}, intDiv(toInt64(toUnixTimestamp(minute)), 3600) AS hour, sum(minutes.n) AS n, ${meanOf("sum(minutes.total)", "1")} AS total
     FROM minutes_v1 AS minutes
     WHERE ${OF_AGENTS} AND metric = {metric:String} AND ${IN_WHOLE_MINUTES}
     GROUP BY agent, hour ${settingsOf(range)}`,
    { ap_ids: range.apIds, metric, from: range.fromMs, to: range.toMs },
  );
  return data.agent.map((agent, i) => ({
    agent,
    hour: data.hour[i] ?? 0,
    n: data.n[i] ?? 0,
    total: data.total[i] ?? 0,
  }));
}
