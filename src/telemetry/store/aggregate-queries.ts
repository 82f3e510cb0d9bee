import * as z from "zod";
import type { Statistic } from "../../schemas/metrics.ts";
import { column, finite, type RunQuery } from "./clickhouse-query.ts";

/** Reads statistics over many agents from the rollup that is ordered by metric and minute. */

export interface AggregateRange {
  metrics: readonly string[];
  statistic: Statistic;
  /** Start of the first bucket and end of the last one. */
  fromMs: number;
  toMs: number;
  /** Length of a bucket, in whole minutes. */
  bucketMs: number;
  /** The number of the group of each agent. Undefined: all agents are others. */
  groupOf?: ReadonlyMap<string, number> | undefined;
  /** The group of all other agents. Undefined: they do not count. */
  otherGroup?: number | undefined;
}

/** Values of metrics of groups in buckets, as columns. */
export interface AggregatePoints {
  /** Indexes of the metrics in the range. */
  metrics: number[];
  groups: number[];
  tsMs: number[];
  values: number[];
}

const Columns = z.object({
  data: z.object({
    index: column(z.number()),
    group: column(z.number()),
    position: column(z.number()),
    value: column(z.number()),
  }),
});

/**
 * Returns the statistic of each metric, group and bucket. One query for all metrics sends the groups of the agents only once.
 * @param runQuery must return the results in columns
 */
export async function readAggregate(runQuery: RunQuery, range: AggregateRange): Promise<AggregatePoints> {
  const { metrics, fromMs, toMs, bucketMs, groupOf, otherGroup } = range;
  const mapping = groupOf === undefined ? undefined : toParameters(groupOf);
  const { data } = await runQuery(Columns, queryFor(range, mapping), {
    metrics,
    from: fromMs / 1000,
    to: toMs / 1000,
    bucket: bucketMs / 1000,
    other: otherGroup ?? 0,
    ...mapping?.values,
  });
  const tsMs = data.position.map((position) => fromMs + (position - 1) * bucketMs);
  return { metrics: data.index, groups: data.group, tsMs, values: data.value };
}

/** Aggregate functions of the means of the agents in each bucket. A second array says which of them exist. */
const STATISTICS: Record<Statistic, string> = {
  avg: "avgIfForEach(means, present)",
  sum: "sumIfForEach(means, present)",
  min: "minIfForEach(means, present)",
  max: "maxIfForEach(means, present)",
  p50: "quantileExactIfForEach(0.5)(means, present)",
  p95: "quantileExactIfForEach(0.95)(means, present)",
  count: "counts",
};
/** Sums of very large numbers may be infinite, or undefined if some are positive and some negative. JSON has neither. */
const toNumber = (expression: string): string => finite(`if(isNaN(${expression}), 0, ${expression})`);

/** Takes one metric after the other: the states of all agents then fit into the processor's cache. */
function queryFor(range: AggregateRange, mapping: MappingParameters | undefined): string {
  const metrics = range.metrics.map((_, i) => metricQuery(i, range, mapping));
  return `
    ${mapping === undefined ? "" : `WITH ${mapping.scalars}`}
    SELECT index, group, position, ${toNumber("toFloat64(statistic)")} AS value
    FROM (${metrics.join(" UNION ALL ")})
    ARRAY JOIN statistics AS statistic, counts AS count, arrayEnumerate(counts) AS position
    WHERE count > 0
    ORDER BY index, group, position`;
}

/**
 * Keeps the buckets in arrays. One row for each agent and bucket takes five times as long, because each of the many results is an entry of
 * a hash table. The weights are floating-point numbers: with integers ClickHouse rounds the mean.
 */
function metricQuery(
  index: number,
  { statistic, fromMs, toMs, bucketMs, otherGroup }: AggregateRange,
  mapping: MappingParameters | undefined,
): string {
  const group = mapping === undefined ? "{other:UInt16}" : mapping.groupOf("agent");
  const isSelected = mapping === undefined || otherGroup !== undefined ? "" : `AND ${mapping.includes("agent")}`;
  return `
    SELECT ${index} AS index, ${group} AS group, sumForEach(present) AS counts, ${STATISTICS[statistic]} AS statistics
    FROM (
      SELECT agent, arrayMap(mean -> NOT isNaN(mean), means) AS present, avgWeightedResample(0, ${(toMs - fromMs) / bucketMs}, 1)(
        total / n, toFloat64(n), toUInt16(intDiv(toUnixTimestamp(minute) - {from:Int64}, {bucket:Int64}))
      ) AS means
      FROM network_minutes_v1
      WHERE metric = {metrics:Array(String)}[${index + 1}]
        AND minute >= toDateTime({from:Int64}) AND minute < toDateTime({to:Int64}) ${isSelected}
      GROUP BY agent
    )
    GROUP BY group`;
}

/** A mapping of agents to groups, as parameters of a query. */
interface MappingParameters {
  values: object;
  /** Definitions for the WITH clause. */
  scalars: string;
  /** Returns an expression for the group of an agent. */
  groupOf(agent: string): string;
  /** Returns a condition: the mapping has the agent. */
  includes(agent: string): string;
}

/** Characters in one parameter. The server's limit is 128 KiB. Names and numbers are ASCII and need no escapes. */
const MAX_PARAMETER_LENGTH = 100_000;

/** Sends lists as texts: the server takes a tenth of a second to parse an array of 10,000 elements. No name contains a comma. */
function toParameters(groupOf: ReadonlyMap<string, number>): MappingParameters {
  // The empty name belongs to no agent. It prevents empty lists.
  const names = toTexts("names", ["", ...groupOf.keys()]);
  const groups = toTexts("groups", [0, ...groupOf.values()]);
  return {
    values: { ...names.values, ...groups.values },
    // Subqueries run once. An expression would be evaluated once for each metric.
    scalars: `(SELECT arrayMap(name -> sipHash64(name), ${names.expression})) AS agents,
      (SELECT arrayMap(group -> toUInt16(group), ${groups.expression})) AS groups`,
    groupOf: (agent) =>
      new Set(groupOf.values()).size === 1 ? "groups[2]" : `transform(${agent}, agents, groups, {other:UInt16})`,
    includes: (agent) => `${agent} IN (SELECT arrayJoin(agents))`,
  };
}

/** Returns parameters with the text of a list, and an expression for the list. */
export function toTexts(name: string, items: readonly (string | number)[]): { values: object; expression: string } {
  const text = items.join();
  const texts = Array.from({ length: Math.ceil(text.length / MAX_PARAMETER_LENGTH) }, (_, i) =>
    text.slice(i * MAX_PARAMETER_LENGTH, (i + 1) * MAX_PARAMETER_LENGTH),
  );
  return {
    values: Object.fromEntries(texts.map((part, i) => [`${name}${i}`, part])),
    expression: `splitByChar(',', concat('', ${texts.map((_, i) => `{${name}${i}:String}`).join()}))`,
  };
}
