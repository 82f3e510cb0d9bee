import type { AgentCache } from "../accounts/agents/agent-cache.ts";
import type { AgentListed } from "../accounts/agents/agent-lists.ts";
import type { AgentStore } from "../accounts/agents/agent-store.ts";
import { isUnlimited } from "../auth/agent-scope.ts";
import type { Actor } from "../auth/identity.ts";
import { authorize, authorizeAgent, authorizeFoundAgent, visibleAgents } from "../auth/permissions.ts";
import { toIsoTime } from "../lib/iso-time.ts";
import type { Selector } from "../lib/selectors.ts";
import type { AgentData, AgentDetails, AgentMetrics, AgentState, SampleSource } from "../schemas/metrics.ts";
import type { Page } from "../schemas/primitives.ts";
import { displayNameOf } from "./metric-names.ts";
import { presenceOf } from "./presence.ts";
import type { Reading, Readings } from "./readings.ts";
import type { ShardClient } from "./shard/shard-client.ts";
import type { Series, SeriesQuery } from "./store/series-queries.ts";

/** Reads telemetry for charts, and lists agents. */
export interface Metrics {
  /** Yields the agents page by page, because configurations may be large. */
  agentDetails(actor: Actor, page: Page): AsyncGenerator<AgentDetails[]>;
  /** Yields the agents that a selector selects and whether each is online, page by page. */
  agentStates(actor: Actor, page: Page, selector?: Selector): AsyncGenerator<AgentState[]>;
  agentData(actor: Actor, query: WindowQuery): Promise<AgentData>;
  /** Returns JSON text: charts poll about once a second, and the shard has most of the text cached. */
  multiMetricData(actor: Actor, query: WindowQuery & { metrics: string[]; sources: boolean }): Promise<string>;
  agentMetrics(actor: Actor, query: WindowQuery): Promise<AgentMetrics>;
}

export interface WindowQuery {
  agent: string;
  /** Length in milliseconds, up to now. */
  window: number;
  /** Only points after this time, in milliseconds since the epoch. */
  since?: number | undefined;
}

/** Samples may be a little ahead, because clocks differ. */
const AHEAD_MS = 5 * 60_000;

export function createMetrics(
  agents: AgentStore,
  agentCache: AgentCache,
  readings: Readings,
  shards: Pick<ShardClient, "read" | "sources">,
  liveWindowMs: number,
  now: () => number = Date.now,
): Metrics {
  /**
   * Returns one JSON text per metric, in the order of the metrics. Reads the agent's shard, which has the live window in memory; reads
   * the store, too, if the range begins earlier or the shard does not have all points.
   */
  const seriesOf = async (query: SeriesQuery & { metrics: readonly string[] }): Promise<Reading<string>> => {
    const fromShard = query.fromMs > now() - liveWindowMs ? await shards.read(query) : undefined;
    if (fromShard !== undefined) {
      return {
        series: fromShard.map((points, i) => `{"metric":${JSON.stringify(query.metrics[i])},"points":${points}}`),
      };
    }
    const { series, completeFromMs } = await readings.series(query);
    const byName = new Map(series.map((one) => [one.metric, toResponse(one)]));
    return {
      series: query.metrics.map((metric) => JSON.stringify(byName.get(metric) ?? { metric, points: [] })),
      completeFromMs,
    };
  };
  /** Throws unless the agent exists and the caller may read it. Charts poll every second, so the agent comes from a cache. */
  const requireAgent = async (actor: Actor, apId: string): Promise<void> => {
    authorizeAgent(actor, "telemetry.read", apId);
    authorizeFoundAgent(actor, "telemetry.read", await agentCache.find(apId));
  };
  const sourcesOf = async (apId: string): Promise<SampleSource[]> =>
    (await shards.sources(apId)).map(({ protocol, app = null, receivedMs }) => ({
      protocol,
      app,
      last_received: toIsoTime(receivedMs),
    }));
  const rangeOf = ({ window, since }: WindowQuery) => {
    const nowMs = now();
    const fromMs = nowMs - window;
    return { fromMs: since === undefined ? fromMs : Math.max(fromMs, since + 1), toMs: nowMs + AHEAD_MS };
  };

  return {
    async *agentDetails(actor, { limit, offset }) {
      authorize(actor, "agents.list");
      const filter = { scope: visibleAgents(actor) };
      for await (const { rows } of agents.pages({ limit, offset, filter })) yield rows.map(toDetails);
    },

    async *agentStates(actor, { limit, offset }, selector = []) {
      authorize(actor, "agents.list");
      const filter = { scope: visibleAgents(actor), selector };
      // To list all agents, one query is cheaper than one for each page.
      const all =
        limit === undefined && isUnlimited(filter.scope) && selector.length === 0
          ? await readings.lastSeen()
          : undefined;
      for await (const { rows } of agents.pages({ limit, offset, filter })) {
        const lastSeen = all ?? (await readings.lastSeen(rows.map(({ apId }) => apId)));
        yield rows.map((row) => ({
          ...toDetails(row),
          labels: row.labels,
          ...presenceOf(row.apId, row.configuration.interval, lastSeen, now()),
        }));
      }
    },

    async agentData(actor, query) {
      await requireAgent(actor, query.agent);
      const range = { apId: query.agent, ...rangeOf(query) };
      const [numbers, strings] = await Promise.all([readings.series(range), readings.strings(range)]);
      const series = [...numbers.series.map(toResponse), ...strings.series.map(toResponse)];
      const completeFromMs = numbers.completeFromMs ?? strings.completeFromMs;
      return { key: `agent/${query.agent}/data`, ...header(query, completeFromMs), series };
    },

    async multiMetricData(actor, query) {
      await requireAgent(actor, query.agent);
      const [{ series, completeFromMs }, sources] = await Promise.all([
        seriesOf({ apId: query.agent, metrics: query.metrics, ...rangeOf(query) }),
        query.sources ? sourcesOf(query.agent) : undefined,
      ]);
      const rest = JSON.stringify({ ...header(query, completeFromMs), sources });
      return `${rest.slice(0, -1)},"series":[${series.join()}]}`;
    },

    async agentMetrics(actor, query) {
      await requireAgent(actor, query.agent);
      const names = await readings.metrics(query.agent, now() - query.window);
      return { ...header(query), metrics: names.map((name) => ({ name, label: displayNameOf(name) })) };
    },
  };
}

const toDetails = ({ id, apId, configuration, onboard }: AgentListed): AgentDetails => ({
  id,
  ap_id: apId,
  configuration,
  onboard,
});

const header = ({ agent, window }: WindowQuery, completeFromMs?: number) => ({
  agent_id: agent,
  window_minutes: Math.ceil(window / 60_000),
  ...(completeFromMs !== undefined && { complete_from: toIsoTime(completeFromMs) }),
});

interface SeriesResponse<V> {
  metric: string;
  bucket_ms?: number;
  points: { ts: string; value: V }[];
}

const toResponse = <V>({ metric, bucketMs, points }: Series<V>): SeriesResponse<V> => ({
  metric,
  ...(bucketMs !== undefined && { bucket_ms: bucketMs }),
  points: points.map(({ tsMs, value }) => ({ ts: toIsoTime(tsMs), value })),
});
