import { toIsoTime } from "./iso-time.ts";

/** Whether an agent is there at this moment. */
export interface Presence {
  online: boolean;
  last_seen: string | null;
}

/** An agent that has missed so many of its reports is not there any more. */
const MISSED_REPORTS = 3;
const DEFAULT_INTERVAL_S = 10;

/** By when it was last heard of, and how often it reports: its configuration's `interval`, whatever that holds. */
export function presenceOf(seenMs: number | undefined, interval: unknown, nowMs: number): Presence {
  if (seenMs === undefined) return { online: false, last_seen: null };
  const intervalS = typeof interval === "number" && interval > 0 ? interval : DEFAULT_INTERVAL_S;
  return { online: nowMs - seenMs < MISSED_REPORTS * intervalS * 1000, last_seen: toIsoTime(seenMs) };
}
