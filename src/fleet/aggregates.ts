import { isUnlimited, scopeFilter } from "../auth/agent-scope.ts";
import type { Actor } from "../auth/identity.ts";
import { authorize, visibleAgents } from "../auth/permissions.ts";
import { Invalid, Unavailable } from "../lib/errors.ts";
import { toIsoTime } from "../lib/iso-time.ts";
import { matches, type Selector } from "../lib/selectors.ts";
import type { Aggregate, AggregateQuery } from "../schemas/metrics.ts";
import { aggregateRecent } from "../telemetry/recent-aggregates.ts";
import type { RecentSums } from "../telemetry/shard/recent-minutes.ts";
import type { ShardClient } from "../telemetry/shard/shard-client.ts";
import type { AggregatePoints, AggregateRange } from "../telemetry/store/aggregate-queries.ts";
import type { TelemetryStore } from "../telemetry/store/telemetry-store.ts";
import { groupByLabels } from "./label-groups.ts";
import type { LabelledAgents } from "./labelled-agents.ts";

/** Statistics over many agents, for charts of a site or of the whole network. */
export interface Aggregates {
  read(actor: Actor, query: Omit<AggregateQuery, "selector">, selector: Selector): Promise<Aggregate>;
}

const MINUTE_MS = 60_000;
const DEFAULT_WINDOW_MS = 60 * MINUTE_MS;
export const MAX_GROUPS = 200;
const MAX_BUCKETS = 500;
/** A period of any length may lie in two buckets. */
const MIN_BUCKETS = 2;
/** Limits the response: groups, metrics and buckets together. */
const MAX_POINTS = 100_000;
/** Limits the memory of ClickHouse: metrics, agents and buckets together. */
const MAX_MEANS = 10_000_000;

export interface AggregatesOptions {
  agents: LabelledAgents;
  store: Pick<TelemetryStore, "aggregate">;
  shards: Pick<ShardClient, "recentMinutes">;
  now?: () => number;
}

export function createAggregates({ agents, store, shards, now = Date.now }: AggregatesOptions): Aggregates {
  /**
   * Takes each bucket from one source: from the shards if they have all of its minutes, otherwise from the rollup. If the store does not
   * respond, earlier buckets are missing.
   */
  const readPoints = async (range: AggregateRange, recent: readonly RecentSums[]): Promise<Points> => {
    const { fromMs, toMs, bucketMs } = range;
    const completeFromMs = Math.max(...recent.map((shard) => shard.completeFromMs));
    const firstMs = recent.length === 0 ? toMs : Math.ceil(completeFromMs / bucketMs) * bucketMs;
    const middleMs = Math.min(Math.max(fromMs, firstMs), toMs);
    const later = middleMs < toMs ? [aggregateRecent(recent, { ...range, fromMs: middleMs })] : [];
    if (fromMs >= middleMs) return { parts: later };
    try {
      return { parts: [await store.aggregate({ ...range, toMs: middleMs }), ...later] };
    } catch (error) {
      if (!(error instanceof Unavailable) || later.length === 0) throw error;
      return { parts: later, completeFromMs: middleMs };
    }
  };

  return {
    async read(actor, { metrics, by, statistic, ...period }, selector) {
      authorize(actor, "telemetry.aggregate");
      authorize(actor, "agents.list");
      const scope = visibleAgents(actor);
      const isVisible = scopeFilter(scope);
      const isWhole = isUnlimited(scope) && selector.length === 0;
      const all = await agents();
      const chosen = isWhole ? all : all.filter((agent) => isVisible(agent) && matches(selector, agent.labels));
      const { groups, groupOf, unlabelled } = groupByLabels(chosen, by);
      if (groups.filter(({ agents }) => agents > 0).length > MAX_GROUPS) {
        const msg = `Value error, by must not divide the agents into more than ${MAX_GROUPS} groups`;
        throw new Invalid([{ loc: ["by"], msg, type: "too_many_groups" }], "query");
      }
      const maxBuckets = Math.min(
        MAX_BUCKETS,
        Math.floor(MAX_POINTS / (metrics.length * groups.length)),
        Math.floor(MAX_MEANS / (metrics.length * chosen.length)),
      );
      const buckets = toBuckets(periodOf(period, now()), Math.max(MIN_BUCKETS, maxBuckets));
      const series = groups.map(() =>
        metrics.map((metric) => ({ metric, points: [] as { ts: string; value: number }[] })),
      );
      const isEmpty = chosen.length === 0 && !isWhole;
      const recent = isEmpty ? [] : ((await shards.recentMinutes(metrics, buckets.fromMs)) ?? []);
      const range = {
        ...buckets,
        metrics,
        statistic,
        // Without a mapping, all agents count. Deleted agents have no labels; only a request for all agents includes them.
        groupOf: isWhole && by.length === 0 ? undefined : groupOf,
        otherGroup: isWhole ? unlabelled : undefined,
      };
      const { parts, completeFromMs } = isEmpty ? { parts: [] } : await readPoints(range, recent);
      for (const points of parts) {
        for (const [i, group] of points.groups.entries()) {
          const point = { ts: toIsoTime(points.tsMs[i] ?? 0), value: points.values[i] ?? 0 };
          series[group]?.[points.metrics[i] ?? 0]?.points.push(point);
        }
      }
      return {
        statistic,
        bucket_ms: buckets.bucketMs,
        start_time: toIsoTime(buckets.fromMs),
        end_time: toIsoTime(buckets.toMs),
        ...(completeFromMs !== undefined && { complete_from: toIsoTime(completeFromMs) }),
        groups: groups.map((group, i) => ({ ...group, series: series[i] ?? [] })).filter(isOccupied),
      };
    },
  };
}

/** The group of agents without labels may have no agent. It is of interest only if deleted agents have values. */
const isOccupied = ({ labels, agents, series }: Aggregate["groups"][number]): boolean =>
  agents > 0 || Object.keys(labels).length === 0 || series.some(({ points }) => points.length > 0);

interface Points {
  parts: AggregatePoints[];
  completeFromMs?: number;
}

interface Period {
  fromMs: number;
  toMs: number;
}

function periodOf(
  { window = DEFAULT_WINDOW_MS, start_time, end_time }: Pick<AggregateQuery, "window" | "start_time" | "end_time">,
  nowMs: number,
): Period {
  return start_time === undefined
    ? { fromMs: nowMs - window, toMs: nowMs }
    : { fromMs: start_time, toMs: end_time ?? nowMs };
}

/** Returns the shortest buckets of whole minutes that cover a period. They begin at multiples of their length, so polls get the same ones. */
function toBuckets({ fromMs, toMs }: Period, maxBuckets: number): Period & { bucketMs: number } {
  for (let minutes = Math.max(1, Math.floor((toMs - fromMs) / MINUTE_MS / maxBuckets)); ; minutes++) {
    const bucketMs = minutes * MINUTE_MS;
    const [first, end] = [Math.floor(fromMs / bucketMs), Math.ceil(toMs / bucketMs)];
    if (end - first <= maxBuckets) return { fromMs: first * bucketMs, toMs: end * bucketMs, bucketMs };
  }
}
