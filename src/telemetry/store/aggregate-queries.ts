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
  return { metrics: data.index.map((index) => index - 1), groups: data.group, tsMs, values: data.value };
}

const STATISTICS: Record<Statistic, string> = {
  avg: "avg(mean)",
  sum: "sum(mean)",
  min: "min(mean)",
  max: "max(mean)",
  p50: "quantileExact(0.5)(mean)",
  p95: "quantileExact(0.95)(mean)",
  count: "toFloat64(count())",
};
/** Sums of very large numbers may be infinite, or undefined if some are positive and some negative. JSON has neither. */
const toNumber = (expression: string): string => finite(`if(isNaN(${expression}), 0, ${expression})`);

/**
 * Groups by metric and agent only: an array has the means of all buckets. Grouping by agent and bucket takes five times as long, because each of the
 * many results is an entry of a hash table. The weights are floating-point numbers: with integers ClickHouse rounds the mean.
 */
function queryFor(
  { statistic, fromMs, toMs, bucketMs, otherGroup }: AggregateRange,
  mapping: MappingParameters | undefined,
): string {
  const group = mapping === undefined ? "{other:UInt16}" : mapping.groupOf("agent");
  const isSelected = mapping === undefined || otherGroup !== undefined ? "" : `AND ${mapping.includes("agent")}`;
  return `
    SELECT index, group, position, ${toNumber(STATISTICS[statistic])} AS value
    FROM (
      SELECT indexOf({metrics:Array(String)}, metric) AS index, ${group} AS group, means
      FROM (
        SELECT metric, agent, avgWeightedResample(0, ${(toMs - fromMs) / bucketMs}, 1)(
          total / n, toFloat64(n), toUInt16(intDiv(toUnixTimestamp(minute) - {from:Int64}, {bucket:Int64}))
        ) AS means
        FROM network_minutes_v1
        WHERE metric IN {metrics:Array(String)} AND minute >= toDateTime({from:Int64}) AND minute < toDateTime({to:Int64}) ${isSelected}
        GROUP BY metric, agent
      )
    )
    ARRAY JOIN means AS mean, arrayEnumerate(means) AS position
    WHERE NOT isNaN(mean)
    GROUP BY index, group, position
    ORDER BY index, group, position`;
}

/** A mapping of agents to groups, as parameters of a query. */
interface MappingParameters {
  values: Record<string, unknown>;
  /** Returns an expression for the group of an agent. */
  groupOf(agent: string): string;
  /** Returns a condition: the mapping has the agent. */
  includes(agent: string): string;
}

/** Characters of the names in one parameter. The server's limit is 128 KiB. Names are ASCII and need no escapes. */
const MAX_PARAMETER_LENGTH = 100_000;
const SEPARATOR_LENGTH = "'',".length;

function toParameters(groupOf: ReadonlyMap<string, number>): MappingParameters {
  const parameters: { names: string[]; groups: number[] }[] = [];
  let length = Number.POSITIVE_INFINITY;
  for (const [name, group] of groupOf) {
    length += name.length + SEPARATOR_LENGTH;
    if (length > MAX_PARAMETER_LENGTH) {
      parameters.push({ names: [], groups: [] });
      length = name.length + SEPARATOR_LENGTH;
    }
    parameters.at(-1)?.names.push(name);
    parameters.at(-1)?.groups.push(group);
  }
  // The empty name belongs to no agent. It prevents empty arrays, which have no type.
  const names = `arrayConcat([''], ${parameters.map((_, i) => `{names${i}:Array(String)}`).join()})`;
  const groups = `arrayConcat([toUInt16(0)], ${parameters.map((_, i) => `{groups${i}:Array(UInt16)}`).join()})`;
  return {
    values: Object.fromEntries(
      parameters.flatMap(({ names, groups }, i) => [
        [`names${i}`, names],
        [`groups${i}`, groups],
      ]),
    ),
    groupOf: (agent) =>
      new Set(groupOf.values()).size === 1
        ? "{groups0:Array(UInt16)}[1]"
        : `transform(${agent}, arrayMap(name -> sipHash64(name), ${names}), ${groups}, {other:UInt16})`,
    includes: (agent) => `${agent} IN (SELECT sipHash64(arrayJoin(${names})))`,
  };
}
