import type { WatchedAgent } from "../../../src/accounts/agents/agent-lists.ts";
import type { Actor } from "../../../src/auth/identity.ts";
import type { ExportSources } from "../../../src/telemetry/export/export-sources.ts";
import type { Point } from "../../../src/telemetry/pending-samples.ts";
import type { SeriesKey } from "../../../src/telemetry/store/export-queries.ts";
import type { AgentSample } from "../../../src/telemetry/store/telemetry-store.ts";

/** Exports that read from memory. */

export const NOW_MS = 1_800_000_000_000;
export const ACTOR: Actor = {
  kind: "admin",
  id: "1",
  name: "admin",
  version: 1,
  expiresAtMs: NOW_MS + 1,
  roles: ["admin"],
  scopes: new Set(["agents:read", "telemetry:read"]),
  hasFullScope: true,
  requestId: "1",
};

export interface World {
  agents: (Omit<WatchedAgent, "ownerId"> & { seenMs?: number })[];
  stored?: (SeriesKey & { points: Point[] })[];
  pending?: AgentSample[];
  /** Says that there are many more points than there are. */
  count?: number;
}

/** Returns sources in memory. */
export function sourcesOf({ agents, stored = [], pending = [], count = 0 }: World): ExportSources {
  const watched = agents.map(({ seenMs: _, ...agent }) => ({ ...agent, ownerId: null }));
  const within = (points: Point[], fromMs: number, toMs: number) =>
    points.filter(({ tsMs }) => tsMs >= fromMs && tsMs <= toMs);
  return {
    agents: async () => watched,
    agentStore: { watched: async () => watched, names: async () => watched.map(({ apId }) => apId) },
    findAgent: async (apId) => watched.find((agent) => agent.apId === apId),
    readings: {
      lastSeen: async () => ({
        times: new Map(agents.flatMap(({ apId, seenMs }) => (seenMs === undefined ? [] : [[apId, seenMs] as const]))),
        isComplete: true,
      }),
    },
    store: {
      async *series({ apIds, metrics }) {
        yield stored
          .filter(({ apId }) => apIds.includes(apId))
          .filter(
            ({ metric }) =>
              metrics?.some(({ exact, prefix }) => exact.includes(metric) || metric.startsWith(prefix)) ?? true,
          )
          .map(({ apId, metric, points }) => ({ apId, metric, count: points.length + count }));
      },
      points: async (series, { fromMs, toMs }) =>
        stored
          .filter(({ apId, metric }) => series.some((one) => one.apId === apId && one.metric === metric))
          .map((one) => ({ ...one, points: within(one.points, fromMs, toMs) })),
      latest: async (apIds, { fromMs, toMs }, limit) =>
        stored
          .filter(({ apId }) => apIds.includes(apId))
          .flatMap(({ apId, metric, points }) =>
            within(points, fromMs, toMs)
              .slice(-1)
              .map((point) => ({ apId, metric, ...point })),
          )
          .slice(0, limit),
      count: async () => 0,
      download: async () => new ReadableStream(),
    },
    shards: {
      pendingOfMany: async (apIds, fromMs, toMs) =>
        pending.filter(({ apId, tsMs }) => apIds.includes(apId) && tsMs >= fromMs && tsMs <= toMs),
      flush: async () => {},
    },
    telemetryDays: 30,
    now: () => NOW_MS,
  };
}

export const MINUTE_MS = 60_000;
export const series = (apId: string, metric: string, ...values: number[]) => ({
  apId,
  metric,
  points: values.map((value, i) => ({ tsMs: NOW_MS - (values.length - i) * 1_000, value })),
});
/** Returns a point some seconds before the present. */
export const at = (seconds: number, value: number): Point => ({ tsMs: NOW_MS - seconds * 1_000, value });
export const agent = (apId: string, labels = {}, seenMs = NOW_MS, interval: number | null = null) => ({
  apId,
  labels,
  interval,
  seenMs,
});
