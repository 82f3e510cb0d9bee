import { useRef } from "preact/hooks";
import { overview, series } from "../../api/operations.ts";
import { type AccessPointCondition, conditionOf } from "../../components/badges.tsx";
import { usePoll } from "../../lib/poll.ts";

/** How an access point does at this moment. */
export interface Vitals {
  condition: AccessPointCondition;
  lastSeen: string | null;
  load: number | null;
  quality: number | null;
  users: number | null;
}

const METRICS = ["load", "quality", "users"] as const;
const EVERY_MS = 2_000;
/** As in the service: an access point is online until it has missed three reports, of an interval within these limits. */
const MISSED_REPORTS = 3;
const DEFAULT_INTERVAL_S = 10;
const MAX_INTERVAL_S = 3_600;
const MIN_PATIENCE_S = 10;
/** How long a report may take to reach this page before the page asks the overview. Clocks may differ by as much. */
const ON_THE_WAY_S = 5;
/** The overview is of all access points: the page asks for it seldom, and only if the samples do not tell. */
const OVERVIEW_EVERY_MS = 30_000;

/**
 * From its own last samples, whose times the access point's clock sets. If none of them lies in the last moments, its clock may be wrong,
 * or it may be silent: the overview knows when the service last received a report.
 */
export function useVitals(apId: string, interval: unknown): Vitals | undefined {
  const looked = useRef<{ atMs: number; vitals: Vitals }>(undefined);
  const intervalS =
    typeof interval === "number" && interval > 0 ? Math.min(interval, MAX_INTERVAL_S) : DEFAULT_INTERVAL_S;
  const windowS = Math.max(MIN_PATIENCE_S, Math.ceil(MISSED_REPORTS * intervalS)) + ON_THE_WAY_S;

  return usePoll(
    async (signal) => {
      const { series: sent } = await series({ agent: apId, metrics: METRICS, window: `${windowS}s` }, signal);
      const [load, quality, users] = METRICS.map((name) => sent.find(({ metric }) => metric === name)?.points.at(-1));
      const lastSeen = [load?.ts, quality?.ts, users?.ts]
        .filter((ts) => ts !== undefined)
        .sort()
        .at(-1);
      if (lastSeen !== undefined) {
        looked.current = undefined;
        const now = (point: { value: number } | undefined) => point?.value ?? null;
        return { condition: "online", lastSeen, load: now(load), quality: now(quality), users: now(users) } as const;
      }
      const nowMs = Date.now();
      if (looked.current === undefined || nowMs - looked.current.atMs >= OVERVIEW_EVERY_MS) {
        looked.current = { atMs: nowMs, vitals: await fromOverview(apId, signal) };
      }
      return looked.current.vitals;
    },
    EVERY_MS,
    [apId, windowS],
  ).data;
}

async function fromOverview(apId: string, signal: AbortSignal): Promise<Vitals> {
  const found = (await overview(signal)).access_points.find(({ ap_id }) => ap_id === apId);
  if (found === undefined) return { condition: "new", lastSeen: null, load: null, quality: null, users: null };
  const { load, quality, users, last_seen: lastSeen } = found;
  const condition = conditionOf(found);
  return condition === "online"
    ? { condition, lastSeen, load, quality, users }
    : { condition, lastSeen, load: null, quality: null, users: null };
}
