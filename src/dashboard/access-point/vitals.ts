import { useRef } from "preact/hooks";
import { overview, series } from "../api/operations.ts";
import { usePoll } from "../live/poll.ts";
import { type AccessPointCondition, conditionOf } from "../parts/badges.tsx";

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
/** The rule of the service: who has missed three reports is not there. */
const MISSED_REPORTS = 3;
const DEFAULT_INTERVAL_S = 10;
/** How long a report may be on its way to us before the overview is asked. */
const ON_THE_WAY_S = 5;
const LONGEST_WINDOW_S = 31 * 86_400;
/** The overview is of all access points: seldom, and only about one of which nothing else is heard. */
const OVERVIEW_EVERY_MS = 30_000;

/** From its own last reports. Of one that is silent, or reports other things, the overview of the network knows. */
export function useVitals(apId: string, interval: unknown): Vitals | undefined {
  const looked = useRef<{ atMs: number; vitals: Vitals }>(undefined);
  const intervalS = typeof interval === "number" && interval > 0 ? interval : DEFAULT_INTERVAL_S;
  const windowS = Math.min(LONGEST_WINDOW_S, Math.ceil(MISSED_REPORTS * intervalS) + ON_THE_WAY_S);

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
