import type { AgentListed } from "../accounts/agent-lists.ts";
import type { AgentStore } from "../accounts/agent-store.ts";
import type { Actor } from "../auth/identity.ts";
import { authorize, authorizeAgent } from "../auth/permissions.ts";
import { NotFound } from "../lib/errors.ts";
import { toIsoTime } from "../lib/iso-time.ts";
import { TtlCache } from "../lib/ttl-cache.ts";
import type { AgentData, AgentDetails, AgentMetrics, AgentState } from "../schemas/metrics.ts";
import type { Page } from "../schemas/primitives.ts";
import { labelOf } from "./metric-names.ts";
import { presenceOf } from "./presence.ts";
import type { ShardClient } from "./shard/shard-client.ts";
import type { Series, SeriesQuery } from "./store/series-queries.ts";
import type { TelemetryStore } from "./store/telemetry-store.ts";

/** What charts ask for. */
export interface Metrics {
  /** In pages: configurations may be large. */
  agentDetails(actor: Actor, page: Page): AsyncGenerator<AgentDetails[]>;
  /** The agents, and which of them are there at this moment, in pages. */
  agentStates(actor: Actor, page: Page): AsyncGenerator<AgentState[]>;
  agentData(actor: Actor, query: WindowQuery): Promise<AgentData>;
  /** As JSON: charts ask about once a second, and most of the text is there already. */
  multiMetricData(actor: Actor, query: WindowQuery & { metrics: string[] }): Promise<string>;
  agentMetrics(actor: Actor, query: WindowQuery): Promise<AgentMetrics>;
}

export interface WindowQuery {
  agent: string;
  /** In milliseconds. */
  window: number;
  /** Only what is newer, in milliseconds of the epoch. */
  since?: number | undefined;
}

/** Agents do not come and go by the minute; a chart that asks every second need not look its agent up each time. */
const KNOWN_MS = 60_000;
const MAX_KNOWN = 10_000;
/** Samples may lie a little ahead, where clocks differ. */
const AHEAD_MS = 5 * 60_000;

export function createMetrics(
  agents: AgentStore,
  store: TelemetryStore,
  shards: Pick<ShardClient, "read">,
  liveWindowMs: number,
  now: () => number = Date.now,
): Metrics {
  /**
   * One JSON text per metric, in their order. From the agent's shard, which remembers the last minutes; from the store what reaches
   * further back, or is too much for a chart.
   */
  const seriesOf = async (query: SeriesQuery & { metrics: readonly string[] }): Promise<string[]> => {
    const recent = query.fromMs > now() - liveWindowMs ? await shards.read(query) : undefined;
    if (recent !== undefined) {
      return recent.map((points, i) => `{"metric":${JSON.stringify(query.metrics[i])},"points":${points}}`);
    }
    const byName = new Map((await store.series(query)).map((series) => [series.metric, toWire(series)]));
    return query.metrics.map((metric) => JSON.stringify(byName.get(metric) ?? { metric, points: [] }));
  };
  const known = new TtlCache<true>({ maxEntries: MAX_KNOWN, now });
  const expectAgent = async (actor: Actor, apId: string): Promise<void> => {
    authorizeAgent(actor, "telemetry.read", apId);
    if (known.get(apId)) return;
    if ((await agents.find(apId)) === undefined) throw new NotFound("Agent");
    known.set(apId, true, now() + KNOWN_MS);
  };
  const span = ({ window, since }: WindowQuery) => {
    const nowMs = now();
    const fromMs = nowMs - window;
    return { fromMs: since === undefined ? fromMs : Math.max(fromMs, since + 1), toMs: nowMs + AHEAD_MS };
  };

  return {
    async *agentDetails(actor, { limit, offset }) {
      authorize(actor, "agents.list");
      for await (const { rows } of agents.pages({ limit, offset, only: actor.apIds })) yield rows.map(toDetails);
    },

    async *agentStates(actor, { limit, offset }) {
      authorize(actor, "agents.list");
      // A query for all is cheaper than one for each page, if all are wanted.
      const all = limit === undefined && actor.apIds === undefined ? await store.lastSeen() : undefined;
      for await (const { rows } of agents.pages({ limit, offset, only: actor.apIds })) {
        const lastSeen = all ?? (await store.lastSeen(rows.map(({ apId }) => apId)));
        yield rows.map((row) => ({
          ...toDetails(row),
          ...presenceOf(lastSeen.get(row.apId), row.configuration.interval, now()),
        }));
      }
    },

    async agentData(actor, query) {
      await expectAgent(actor, query.agent);
      const range = { apId: query.agent, ...span(query) };
      const [numbers, texts] = await Promise.all([store.series(range), store.texts(range)]);
      const series = [...numbers.map(toWire), ...texts.map(toWire)];
      return { key: `agent/${query.agent}/data`, ...header(query), series };
    },

    async multiMetricData(actor, query) {
      await expectAgent(actor, query.agent);
      const series = await seriesOf({ apId: query.agent, metrics: query.metrics, ...span(query) });
      return `${JSON.stringify(header(query)).slice(0, -1)},"series":[${series.join()}]}`;
    },

    async agentMetrics(actor, query) {
      await expectAgent(actor, query.agent);
      const names = await store.metrics(query.agent, now() - query.window);
      return { ...header(query), metrics: names.map((name) => ({ name, label: labelOf(name) })) };
    },
  };
}

const toDetails = ({ id, apId, configuration, onboard }: AgentListed): AgentDetails => ({
  ...{ id, ap_id: apId, configuration, onboard },
});

const header = ({ agent, window }: WindowQuery) => ({ agent_id: agent, window_minutes: Math.ceil(window / 60_000) });

interface WireSeries<V> {
  metric: string;
  bucket_ms?: number;
  points: { ts: string; value: V }[];
}

const toWire = <V>({ metric, bucketMs, points }: Series<V>): WireSeries<V> => ({
  metric,
  ...(bucketMs !== undefined && { bucket_ms: bucketMs }),
  points: points.map(({ tsMs, value }) => ({ ts: toIsoTime(tsMs), value })),
});
