import { toIsoTime } from "../lib/iso-time.ts";

/** Whether an agent is there at this moment. */
export interface Presence {
  online: boolean;
  /** When something was last received from it. */
  last_seen: string | null;
}

/** An agent that has missed so many of its reports is offline. */
const MISSED_REPORTS = 3;
const DEFAULT_INTERVAL_S = 10;
/** What an agent claims is clamped: it must not stay online for ever after its last report. */
const MIN_INTERVAL_S = 1;
const MAX_INTERVAL_S = 3_600;
const MIN_PATIENCE_MS = 10_000;

/**
 * Tells the presence by the time of the last receipt, and by how often the agent reports: its configuration's `interval`, which may
 * hold anything. The agent's own clock plays no part.
 */
export function presenceOf(receivedMs: number | undefined, interval: unknown, nowMs: number): Presence {
  if (receivedMs === undefined) return { online: false, last_seen: null };
  const claimedS = typeof interval === "number" && interval > 0 ? interval : DEFAULT_INTERVAL_S;
  const intervalS = Math.min(Math.max(claimedS, MIN_INTERVAL_S), MAX_INTERVAL_S);
  const timeoutMs = Math.max(MISSED_REPORTS * intervalS * 1000, MIN_PATIENCE_MS);
  return { online: nowMs - receivedMs < timeoutMs, last_seen: toIsoTime(receivedMs) };
}
