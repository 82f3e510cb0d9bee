/** The limits of persistent sessions (`clean: false`), whatever stores them. */

/** Commands are valid for a minute, so the messages in a day-old session are useless. */
export const AGENT_SESSION_MS = 24 * 3_600_000;
/** Telemetry must not be lost if a bridge is down over a weekend or a holiday. */
export const SERVICE_SESSION_MS = 7 * 24 * 3_600_000;
/** An agent needs one session. The others allow for agents that use a new client id after each restart. */
export const SESSIONS_PER_AGENT = 4;

/** The broker puts this prefix in front of the client id of an agent. */
const AGENT_ID = /^agent\/([^/]+)\//;
export const sessionIdOf = (apId: string, clientId: string): string => `agent/${apId}/${clientId}`;
export const isOfAgent = (sessionId: string): boolean => AGENT_ID.test(sessionId);
export const ownerOf = (sessionId: string): string | undefined => AGENT_ID.exec(sessionId)?.[1];

/** Returns how long an unused session is kept. */
export const keptMsOf = (sessionId: string): number => (isOfAgent(sessionId) ? AGENT_SESSION_MS : SERVICE_SESSION_MS);

export interface SessionAge {
  id: string;
  openedMs: number;
  /** Undefined while its client is connected. */
  endedMs: number | undefined;
}

/** Returns the sessions of an agent that must be removed when it opens another one: the oldest, and those without a connection first. */
export function excessSessions(others: readonly SessionAge[]): string[] {
  const rank = ({ endedMs = Number.MAX_SAFE_INTEGER }: SessionAge): number => endedMs;
  return others
    .toSorted((a, b) => rank(a) - rank(b) || a.openedMs - b.openedMs)
    .slice(0, Math.max(0, others.length + 1 - SESSIONS_PER_AGENT))
    .map(({ id }) => id);
}

/** The limit of a client's queue. Beyond it, the oldest messages are removed. */
export interface QueueLimit {
  messages: number;
  bytes: number;
}

/**
 * An agent gets at most one command every ten seconds. Each command is published up to eight times and valid for a minute, so all but the
 * newest hundred messages have expired.
 */
export const AGENT_LIMIT: QueueLimit = { messages: 100, bytes: 256 * 1024 };
/** Telemetry for a disconnected bridge. It must not fill the disk, which would stop the broker for all clients. */
export const SERVICE_LIMIT: QueueLimit = { messages: 10_000_000, bytes: 4 * 1024 ** 3 };

export const queueLimitOf = (sessionId: string): QueueLimit => (isOfAgent(sessionId) ? AGENT_LIMIT : SERVICE_LIMIT);
