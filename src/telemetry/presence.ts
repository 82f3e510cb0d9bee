import { toIsoTime } from "../lib/iso-time.ts";

/** When the service last received something from each agent. */
export interface LastSeen {
  /** In milliseconds since the epoch, by agent. */
  times: Map<string, number>;
  /** Whether the store could be read as a whole. Otherwise times of other agents may exist. */
  isComplete: boolean;
}

/** Whether an agent is online. */
export interface Presence {
  online: boolean;
  /** When the service last received something from it. */
  last_seen: string | null;
  /** The time of the last receipt cannot be read at the moment. */
  last_seen_unknown?: true;
}

/** An agent is offline after it has missed this many reports. */
const MISSED_REPORTS = 3;
const DEFAULT_INTERVAL_S = 10;
/** Clamps the interval that an agent claims: it must not stay online for ever after its last report. */
const MIN_INTERVAL_S = 1;
const MAX_INTERVAL_S = 3_600;
const MIN_TIMEOUT_MS = 10_000;

/**
 * Returns whether an agent is online, from the time of its last receipt and the agent's report interval. The agent's own clock does not
 * matter.
 * @param interval `interval` of the agent's configuration, in seconds; agents may set it to anything
 */
export function presenceOf(apId: string, interval: unknown, { times, isComplete }: LastSeen, nowMs: number): Presence {
  const receivedMs = times.get(apId);
  if (receivedMs === undefined)
    return { online: false, last_seen: null, ...(!isComplete && { last_seen_unknown: true }) };
  return { online: nowMs - receivedMs < onlineTimeoutMs(interval), last_seen: toIsoTime(receivedMs) };
}

/** Returns for how long after a receipt an agent is online. */
export function onlineTimeoutMs(interval: unknown): number {
  const claimedS = typeof interval === "number" && interval > 0 ? interval : DEFAULT_INTERVAL_S;
  const intervalS = Math.min(Math.max(claimedS, MIN_INTERVAL_S), MAX_INTERVAL_S);
  return Math.max(MISSED_REPORTS * intervalS * 1000, MIN_TIMEOUT_MS);
}
