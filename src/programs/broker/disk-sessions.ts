import type { ClassicLevel } from "classic-level";
import * as z from "zod";
import { excessSessions, keptMsOf, ownerOf } from "./limits.ts";
import type { Sessions } from "./store.ts";

/**
 * The persistent sessions of the broker's clients (`clean: false`). The time of the last use of each session is on disk, so that unused
 * sessions expire together with their subscriptions and queued messages.
 */

/** Stores the subscriptions and the queued messages of the sessions. */
export interface SessionStore {
  clientIds(): Promise<Iterable<string>>;
  removeSession(clientId: string): Promise<void>;
}

export interface DiskSessionsOptions {
  /** Closes the connection of a client, if it has one. */
  disconnect(clientId: string): void;
  now?: () => number;
}

interface Session {
  openedMs: number;
  /** Undefined while its client is connected. */
  endedMs: number | undefined;
  /** The connection that uses the session. */
  connection: object | undefined;
}

const KEY = "session:";
const Saved = z.object({ openedMs: z.number(), endedMs: z.number().optional() });

export class DiskSessions implements Sessions {
  readonly #level: ClassicLevel;
  readonly #store: SessionStore;
  readonly #disconnect: (clientId: string) => void;
  readonly #now: () => number;
  readonly #sessions = new Map<string, Session>();
  readonly #byAgent = new Map<string, Set<string>>();

  constructor(level: ClassicLevel, store: SessionStore, { disconnect, now = Date.now }: DiskSessionsOptions) {
    this.#level = level;
    this.#store = store;
    this.#disconnect = disconnect;
    this.#now = now;
  }

  /** Loads the sessions of an earlier run. Must be called once, before any client connects. */
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
    // Sessions of earlier versions, which did not record the time of last use.
    for (const id of await this.#store.clientIds())
      if (!this.#sessions.has(id)) this.#add(id, { openedMs: nowMs, endedMs: undefined, connection: undefined });
    // The clients of these sessions were connected when the broker stopped.
    for (const [id, session] of this.#sessions) if (session.endedMs === undefined) await this.#end(id, session);
    await this.removeExpired();
  }

  async open(clientId: string, isClean: boolean, connection: object): Promise<void> {
    if (isClean) return await this.#remove(clientId);
    const session = { openedMs: this.#now(), endedMs: undefined, connection };
    this.#add(clientId, session);
    await this.#save(clientId, session);
    const owner = ownerOf(clientId);
    if (owner === undefined) return;
    const others = [...(this.#byAgent.get(owner) ?? [])].filter((id) => id !== clientId);
    const ages = others.map((id) => ({ openedMs: 0, endedMs: undefined, ...this.#sessions.get(id), id }));
    for (const id of excessSessions(ages)) await this.#remove(id);
  }

  async close(clientId: string, connection: object): Promise<void> {
    const session = this.#sessions.get(clientId);
    if (session?.connection === connection) await this.#end(clientId, session);
  }

  /** Removes the sessions that were unused for too long. */
  async removeExpired(): Promise<void> {
    const nowMs = this.#now();
    for (const [id, { endedMs }] of this.#sessions) {
      if (endedMs !== undefined && nowMs - endedMs > keptMsOf(id)) await this.#remove(id);
    }
  }

  async owners(): Promise<Iterable<string>> {
    return this.#byAgent.keys();
  }

  async removeAgent(apId: string): Promise<void> {
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
    // Last, so that after a kill before this line the next broker finds the session and removes the rest.
    await this.#level.del(keyOf(id));
  }
}

const keyOf = (id: string): string => `${KEY}${encodeURIComponent(id)}`;
