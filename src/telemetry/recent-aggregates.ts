import type { Statistic } from "../schemas/metrics.ts";
import type { RecentSums } from "./shard/recent-minutes.ts";
import type { AggregatePoints, AggregateRange } from "./store/aggregate-queries.ts";

/** Computes statistics of the last minutes from the sums of the shards, with the same results as the queries of the rollup. */

interface Sum {
  count: number;
  total: number;
}

export function aggregateRecent(
  shards: readonly RecentSums[],
  { metrics, statistic, fromMs, toMs, bucketMs, groupOf, otherGroup }: AggregateRange,
): AggregatePoints {
  const points: AggregatePoints = { metrics: [], groups: [], tsMs: [], values: [] };
  for (const [index, metric] of metrics.entries()) {
    for (let tsMs = fromMs; tsMs < toMs; tsMs += bucketMs) {
      const byGroup = new Map<number, number[]>();
      for (const [apId, { count, total }] of sumsOf(shards, metric, tsMs, tsMs + bucketMs)) {
        const group = groupOf?.get(apId) ?? otherGroup;
        const mean = total / count;
        if (group === undefined || Number.isNaN(mean)) continue;
        const means = byGroup.get(group);
        if (means === undefined) byGroup.set(group, [mean]);
        else means.push(mean);
      }
      for (const [group, means] of byGroup) {
        points.metrics.push(index);
        points.groups.push(group);
        points.tsMs.push(tsMs);
        points.values.push(toNumber(STATISTICS[statistic](means)));
      }
    }
  }
  return points;
}

/** Returns the sums of each agent in a bucket. */
function sumsOf(shards: readonly RecentSums[], metric: string, fromMs: number, toMs: number): Map<string, Sum> {
  const sums = new Map<string, Sum>();
  for (const shard of shards) {
    for (const { metric: name, minuteMs, agents, counts, totals } of shard.sums) {
      if (name !== metric || minuteMs < fromMs || minuteMs >= toMs) continue;
      for (const [i, agent] of agents.entries()) {
        const apId = shard.apIds[agent] ?? "";
        const earlier = sums.get(apId);
        const [count, total] = [counts[i] ?? 0, totals[i] ?? 0];
        sums.set(apId, { count: (earlier?.count ?? 0) + count, total: (earlier?.total ?? 0) + total });
      }
    }
  }
  return sums;
}

const sum = (values: readonly number[]): number => values.reduce((total, value) => total + value, 0);
/** The element of this rank, as `quantileExact` of ClickHouse has it. */
const quantile = (level: number) => (values: number[]) =>
  Float64Array.from(values).sort()[Math.floor(level * values.length)] ?? 0;

/** Each gets at least one value. */
const STATISTICS: Record<Statistic, (values: number[]) => number> = {
  avg: (values) => sum(values) / values.length,
  sum,
  min: (values) => values.reduce((least, value) => Math.min(least, value)),
  max: (values) => values.reduce((greatest, value) => Math.max(greatest, value)),
  p50: quantile(0.5),
  p95: quantile(0.95),
  count: ({ length }) => length,
};

const toNumber = (value: number): number =>
  Number.isNaN(value) ? 0 : Math.min(Math.max(value, -Number.MAX_VALUE), Number.MAX_VALUE);
