import type { AgentStore } from "../accounts/agent-store.ts";
import type { Actor } from "../auth/identity.ts";
import { authorize } from "../auth/permissions.ts";
import type { AccessPointState, Overview } from "../schemas/overview.ts";
import type { Page } from "../schemas/primitives.ts";
import { presenceOf } from "../telemetry/presence.ts";
import type { ShardClient } from "../telemetry/shard/shard-client.ts";
import type { TelemetryStore } from "../telemetry/store/telemetry-store.ts";

/** The whole network at a glance. */
export interface NetworkOverview {
  /** An `Overview`, or a page of it, as JSON: many ask for the same. */
  json(actor: Actor, page?: Page): Promise<string>;
}

/** However many ask, all access points are looked through once in this time. */
const RENEWED_EVERY_MS = 2_000;
/** Whoever asks while that is being done gets the one before, unless it is older than this. */
const MAX_AGE_MS = 5_000;

const NO_FIGURES = { load: null, quality: null, users: null };

interface Made {
  atMs: number;
  overview: Overview;
  json: string;
}

export function createOverview(
  agents: Pick<AgentStore, "outlines">,
  store: Pick<TelemetryStore, "lastSeen">,
  shards: Pick<ShardClient, "latest">,
  now: () => number = Date.now,
): NetworkOverview {
  let last: Made | undefined;
  let begunMs = Number.NEGATIVE_INFINITY;

  const make = async (atMs: number): Promise<Made> => {
    const [outlines, lastSeen, figures] = await Promise.all([agents.outlines(), store.lastSeen(), shards.latest()]);
    const access_points = outlines.map(
      ({ apId, onboard, accessPointType, latitude, longitude, interval }): AccessPointState => {
        const { load, quality, users } = figures.get(apId) ?? NO_FIGURES;
        return {
          ap_id: apId,
          access_point_type: accessPointType,
          latitude,
          longitude,
          onboard,
          ...presenceOf(lastSeen.get(apId), interval, atMs),
          load,
          quality,
          users,
        };
      },
    );
    const overview = { at: new Date(atMs).toISOString(), access_points };
    return { atMs, overview, json: JSON.stringify(overview) };
  };
  /** Not one promise for all who wait: it would end with the request that began it. */
  const current = async (): Promise<Made> => {
    const nowMs = now();
    if (last !== undefined && nowMs - begunMs < RENEWED_EVERY_MS && nowMs - last.atMs < MAX_AGE_MS) return last;
    begunMs = nowMs;
    const made = await make(nowMs);
    // A slow one may be overtaken.
    if (last === undefined || made.atMs > last.atMs) last = made;
    return made;
  };

  return {
    async json(actor, { limit, offset } = { offset: 0 }) {
      authorize(actor, "agents.overview");
      authorize(actor, "agents.list");
      const { overview, json } = await current();
      if (actor.apIds === undefined && limit === undefined && offset === 0) return json;
      const own = actor.apIds && new Set(actor.apIds);
      const access_points = overview.access_points
        .filter(({ ap_id }) => own?.has(ap_id) ?? true)
        .slice(offset, limit === undefined ? undefined : offset + limit);
      return JSON.stringify({ at: overview.at, access_points } satisfies Overview);
    },
  };
}
