import type { AgentStore } from "../accounts/agents/agent-store.ts";
import { isUnlimited } from "../auth/agent-scope.ts";
import type { Actor } from "../auth/identity.ts";
import { authorize, visibleAgents } from "../auth/permissions.ts";
import type { Selector } from "../lib/selectors.ts";
import type { AccessPointState, Overview } from "../schemas/fleet/overview.ts";
import type { Page } from "../schemas/primitives.ts";
import { presenceOf } from "../telemetry/presence.ts";
import type { Readings } from "../telemetry/readings.ts";
import type { ShardClient } from "../telemetry/shard/shard-client.ts";

/** The state of all access points. */
export interface NetworkOverview {
  /** Returns an `Overview`, or one page of it, as JSON text. Requests without limits share one text. */
  json(actor: Actor, page?: Page, selector?: Selector): Promise<string>;
}

/** The overview is built at most once in this time, for any number of requests. */
const REFRESH_INTERVAL_MS = 2_000;
/** Requests during a build get the previous overview, unless it is older than this. */
const MAX_AGE_MS = 5_000;

const NO_METRICS = { load: null, quality: null, users: null };

interface Snapshot {
  atMs: number;
  overview: Overview;
  json: string;
}

export function createOverview(
  agents: Pick<AgentStore, "outlines" | "names">,
  readings: Pick<Readings, "lastSeen">,
  shards: Pick<ShardClient, "latest">,
  now: () => number = Date.now,
): NetworkOverview {
  let last: Snapshot | undefined;
  let startedMs = Number.NEGATIVE_INFINITY;

  const build = async (atMs: number): Promise<Snapshot> => {
    const [outlines, lastSeen, metrics] = await Promise.all([agents.outlines(), readings.lastSeen(), shards.latest()]);
    const access_points = outlines.map(
      ({ apId, onboard, accessPointType, latitude, longitude, interval, site }): AccessPointState => {
        const { load, quality, users } = metrics.get(apId) ?? NO_METRICS;
        return {
          ap_id: apId,
          access_point_type: accessPointType,
          latitude,
          longitude,
          site,
          onboard,
          ...presenceOf(apId, interval, lastSeen, atMs),
          load,
          quality,
          users,
        };
      },
    );
    const overview = { at: new Date(atMs).toISOString(), access_points };
    return { atMs, overview, json: JSON.stringify(overview) };
  };

  /** Does not share one promise between requests: the platform cancels it with the request that started it. */
  const current = async (): Promise<Snapshot> => {
    const nowMs = now();
    if (last !== undefined && nowMs - startedMs < REFRESH_INTERVAL_MS && nowMs - last.atMs < MAX_AGE_MS) return last;
    startedMs = nowMs;
    const snapshot = await build(nowMs);
    // A later build may have finished before a slow one.
    if (last === undefined || snapshot.atMs > last.atMs) last = snapshot;
    return snapshot;
  };

  return {
    async json(actor, { limit, offset } = { offset: 0 }, selector = []) {
      authorize(actor, "agents.overview");
      authorize(actor, "agents.list");
      const scope = visibleAgents(actor);
      const isWhole = isUnlimited(scope) && selector.length === 0;
      const [{ overview, json }, names] = await Promise.all([
        current(),
        isWhole ? undefined : agents.names({ scope, selector }),
      ]);
      if (isWhole && limit === undefined && offset === 0) return json;
      const chosen = names && new Set(names);
      const access_points = overview.access_points
        .filter(({ ap_id }) => chosen?.has(ap_id) ?? true)
        .slice(offset, limit === undefined ? undefined : offset + limit);
      return JSON.stringify({ at: overview.at, access_points } satisfies Overview);
    },
  };
}
