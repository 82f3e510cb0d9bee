import type { ClassicLevel } from "classic-level";
import * as z from "zod";

/**
 * The persistent sessions of the broker's clients (`clean: false`): when each was used last, on disk, so that those that are not used any
 * more go, with their subscriptions and with what is kept for them.
 */

/** What is kept for the sessions. */
export interface SessionStore {
  clientIds(): Promise<Iterable<string>>;
  removeSession(clientId: string): Promise<void>;
}

export interface BrokerSessionsOptions {
  /** Ends the connection of a client, if it has one. */
  disconnect(clientId: string): void;
  now?: () => number;
}

interface Session {
  openedMs: number;
  /** Undefined while its client is connected. */
  endedMs: number | undefined;
  /** Whose connection it is. */
  connection: object | undefined;
}

/** A command is valid for a minute. What an agent finds in its session after a day is of no use any more. */
export const AGENT_SESSION_MS = 24 * 3_600_000;
/** Telemetry for a bridge that is away over a weekend, or a holiday, must not be lost. */
export const SERVICE_SESSION_MS = 7 * 24 * 3_600_000;
/** An agent needs one. The others are for one that restarts under new client ids. */
export const SESSIONS_PER_AGENT = 4;

const KEY = "session:";
const Saved = z.object({ openedMs: z.number(), endedMs: z.number().optional() });

/** Set by the broker in front of the client id of an agent. */
const AGENT_ID = /^agent\/([^/]+)\//;
export const sessionIdOf = (apId: string, clientId: string): string => `agent/${apId}/${clientId}`;
export const isOfAgent = (sessionId: string): boolean => AGENT_ID.test(sessionId);
const ownerOf = (sessionId: string): string | undefined => AGENT_ID.exec(sessionId)?.[1];

export class BrokerSessions {
  readonly #level: ClassicLevel;
  readonly #store: SessionStore;
  readonly #disconnect: (clientId: string) => void;
  readonly #now: () => number;
  readonly #sessions = new Map<string, Session>();
  readonly #byAgent = new Map<string, Set<string>>();

  constructor(level: ClassicLevel, store: SessionStore, { disconnect, now = Date.now }: BrokerSessionsOptions) {
    this.#level = level;
    this.#store = store;
    this.#disconnect = disconnect;
    this.#now = now;
  }

  /** Reads what an earlier broker has left. To be called once, before any client connects. */
  async load(): Promise<void> {
    const nowMs = this.#now();
    for await (const [key, value] of this.#level.iterator({ gt: KEY, lt: "session;" })) {
      const saved = Saved.safeParse(JSON.parse(value));
      if (saved.success)
        this.#add(decodeURIComponent(key.slice(KEY.length)), {
          endedMs: undefined,
          ...saved.data,
          connection: undefined,
        });
    }
    // Those of a version that did not note them.
    for (const id of await this.#store.clientIds())
      if (!this.#sessions.has(id)) this.#add(id, { openedMs: nowMs, endedMs: undefined, connection: undefined });
    // Their clients were connected when the broker ended.
    for (const [id, session] of this.#sessions) if (session.endedMs === undefined) await this.#end(id, session);
    await this.removeExpired();
  }

  /** Notes that a client connects, before the broker reads its session. An older session makes way if its agent has too many. */
  async open(clientId: string, isClean: boolean, connection: object): Promise<void> {
    if (isClean) return await this.#remove(clientId);
    const session = { openedMs: this.#now(), endedMs: undefined, connection };
    this.#add(clientId, session);
    await this.#save(clientId, session);
    const owner = ownerOf(clientId);
    if (owner === undefined) return;
    const others = [...(this.#byAgent.get(owner) ?? [])].filter((id) => id !== clientId);
    // Those that are not connected first.
    const rank = (id: string): [number, number] => {
      const { endedMs = Number.MAX_SAFE_INTEGER, openedMs = 0 } = this.#sessions.get(id) ?? {};
      return [endedMs, openedMs];
    };
    others.sort((a, b) => rank(a)[0] - rank(b)[0] || rank(a)[1] - rank(b)[1]);
    for (const id of others.slice(0, Math.max(0, others.length + 1 - SESSIONS_PER_AGENT))) await this.#remove(id);
  }

  /** Notes that a connection has ended. By then the client may have another one, which has taken its session over. */
  async close(clientId: string, connection: object): Promise<void> {
    const session = this.#sessions.get(clientId);
    if (session?.connection === connection) await this.#end(clientId, session);
  }

  /** Removes the sessions that have not been used for too long. */
  async removeExpired(): Promise<void> {
    const nowMs = this.#now();
    for (const [id, { endedMs }] of this.#sessions) {
      const keptMs = isOfAgent(id) ? AGENT_SESSION_MS : SERVICE_SESSION_MS;
      if (endedMs !== undefined && nowMs - endedMs > keptMs) await this.#remove(id);
    }
  }

  /** Agents that have sessions. */
  owners(): Iterable<string> {
    return this.#byAgent.keys();
  }

  /** Removes the sessions of an agent. */
  async forget(apId: string): Promise<void> {
    for (const id of this.#byAgent.get(apId) ?? []) await this.#remove(id);
  }

  #add(id: string, session: Session): void {
    this.#sessions.set(id, session);
    const owner = ownerOf(id);
    if (owner !== undefined) this.#byAgent.set(owner, (this.#byAgent.get(owner) ?? new Set()).add(id));
  }

  async #end(id: string, session: Session): Promise<void> {
    session.endedMs = this.#now();
    session.connection = undefined;
    await this.#save(id, session);
  }

  async #save(id: string, { openedMs, endedMs }: Session): Promise<void> {
    await this.#level.put(keyOf(id), JSON.stringify({ openedMs, endedMs }));
  }

  async #remove(id: string): Promise<void> {
    const session = this.#sessions.get(id);
    if (session === undefined) return;
    if (session.connection !== undefined) this.#disconnect(id);
    this.#sessions.delete(id);
    const owner = ownerOf(id) ?? "";
    this.#byAgent.get(owner)?.delete(id);
    if (this.#byAgent.get(owner)?.size === 0) this.#byAgent.delete(owner);
    await this.#store.removeSession(id);
    // Last: if the broker is killed before this, the next one finds the session and removes the rest.
    await this.#level.del(keyOf(id));
  }
}

const keyOf = (id: string): string => `${KEY}${encodeURIComponent(id)}`;
