import { useRef } from "preact/hooks";
import type { SampleSource } from "../../../schemas/metrics.ts";
import { serviceNowMs } from "../../api/clock.ts";
import { overview, series } from "../../api/operations.ts";
import { type AccessPointCondition, conditionOf } from "../../components/badges.tsx";
import { usePoll } from "../../lib/poll.ts";

/** The current state of an access point and its latest values. */
export interface CurrentStatus {
  condition: AccessPointCondition;
  lastSeen: string | null;
  load: number | null;
  quality: number | null;
  users: number | null;
  /** How its samples arrive. Empty if the service does not know it. */
  sources: readonly SampleSource[];
}

const METRICS = ["load", "quality", "users"] as const;
const POLL_INTERVAL_MS = 2_000;
/** Same rule as in the service: an access point is online until it misses three reports. These limit the interval. */
const MISSED_REPORTS = 3;
const DEFAULT_INTERVAL_S = 10;
const MAX_INTERVAL_S = 3_600;
const MIN_WINDOW_S = 10;
/** How late a report may reach this page before the page requests the overview. Covers differences between clocks. */
const MAX_DELAY_S = 5;
/** The overview contains all access points, so request it rarely, and only if there are no recent samples. */
const OVERVIEW_INTERVAL_MS = 30_000;

/**
 * Polls the status of an access point. Reads its latest samples, and when the service received them, first. If none is recent, the access
 * point is offline, or the service has just restarted and its clock is wrong. The overview then tells when the service last received a
 * report.
 */
export function useCurrentStatus(apId: string, interval: unknown): CurrentStatus | undefined {
  const fromLastOverview = useRef<{ atMs: number; status: Omit<CurrentStatus, "sources"> }>(undefined);
  const intervalS =
    typeof interval === "number" && interval > 0 ? Math.min(interval, MAX_INTERVAL_S) : DEFAULT_INTERVAL_S;
  const windowS = Math.max(MIN_WINDOW_S, Math.ceil(MISSED_REPORTS * intervalS)) + MAX_DELAY_S;

  return usePoll(
    async (signal) => {
      const { series: received, sources = [] } = await series(
        { agent: apId, metrics: METRICS, window: `${windowS}s`, sources: "true" },
        signal,
      );
      const [load, quality, users] = METRICS.map((name) =>
        received.find(({ metric }) => metric === name)?.points.at(-1),
      );
      // Some access points have other metrics, or a wrong clock, which sets the times of the samples.
      const sinceMs = serviceNowMs() - windowS * 1_000;
      const receivedAt = sources.map(({ last_received }) => last_received).filter((ts) => Date.parse(ts) > sinceMs);
      const lastSeen = [load?.ts, quality?.ts, users?.ts, ...receivedAt]
        .filter((ts) => ts !== undefined)
        .sort()
        .at(-1);
      if (lastSeen !== undefined) {
        fromLastOverview.current = undefined;
        const toValue = (point: { value: number } | undefined) => point?.value ?? null;
        return {
          condition: "online",
          lastSeen,
          load: toValue(load),
          quality: toValue(quality),
          users: toValue(users),
          sources,
        } as const;
      }
      const nowMs = Date.now();
      if (fromLastOverview.current === undefined || nowMs - fromLastOverview.current.atMs >= OVERVIEW_INTERVAL_MS) {
        fromLastOverview.current = { atMs: nowMs, status: await statusFromOverview(apId, signal) };
      }
      return { ...fromLastOverview.current.status, sources };
    },
    POLL_INTERVAL_MS,
    [apId, windowS],
  ).data;
}

async function statusFromOverview(apId: string, signal: AbortSignal): Promise<Omit<CurrentStatus, "sources">> {
  const found = (await overview("", signal)).access_points.find(({ ap_id }) => ap_id === apId);
  if (found === undefined) return { condition: "new", lastSeen: null, load: null, quality: null, users: null };
  const { load, quality, users, last_seen: lastSeen } = found;
  const condition = conditionOf(found);
  return condition === "online"
    ? { condition, lastSeen, load, quality, users }
    : { condition, lastSeen, load: null, quality: null, users: null };
}
