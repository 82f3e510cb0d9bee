import type { Redis } from "ioredis";
import { AGENT_SESSION_MS, excessSessions, keptMsOf, ownerOf } from "../limits.ts";
import type { Sessions } from "../store.ts";
import { KEYS, transact } from "./keys.ts";

/**
 * The persistent sessions of the clients of all nodes. A node holds a lease. If it ends without closing its sessions, another node ends them
 * when the lease has expired.
 */

export interface RedisSessionsOptions {
  node: string;
  /** Closes the connection of a client on the node that has it. */
  disconnect(clientId: string): void;
  /** Removes the subscriptions and messages of a session. */
  removeSession(clientId: string): Promise<void>;
  now?: () => number;
}

/** A node that cannot renew its lease for this long has closed its connections. */
const LEASE_S = 15;
const AT_ONCE = 500;

export class RedisSessions implements Sessions {
  readonly #redis: Redis;
  readonly #options: RedisSessionsOptions;
  readonly #now: () => number;
  /** The names of this node's connections. */
  readonly #connections = new WeakMap<object, string>();
  #count = 0;

  constructor(redis: Redis, options: RedisSessionsOptions) {
    this.#redis = redis;
    this.#options = options;
    this.#now = options.now ?? Date.now;
  }

  async open(clientId: string, isClean: boolean, connection: object): Promise<void> {
    // aedes closes the other connection of the client, on any node. To disconnect it by its id could also meet the new one.
    if (isClean) return await this.#remove(clientId, false);
    const { node } = this.#options;
    const name = `${node} ${++this.#count}`;
    this.#connections.set(connection, name);
    const owner = ownerOf(clientId);
    await this.#redis.brokerOpenSession(clientId, name, node, this.#now(), owner ?? "");
    if (owner === undefined) return;
    const others = (await this.#redis.smembers(KEYS.agent(owner))).filter((id) => id !== clientId);
    const ages = await Promise.all(others.map((id) => this.#ageOf(id)));
    for (const id of excessSessions(ages)) await this.#remove(id);
  }

  async #ageOf(id: string) {
    const { opened, ended } = await this.#redis.hgetall(KEYS.session(id));
    return { id, openedMs: Number(opened ?? 0), endedMs: ended === undefined ? undefined : Number(ended) };
  }

  async close(clientId: string, connection: object): Promise<void> {
    const name = this.#connections.get(connection);
    if (name !== undefined) await this.#end(clientId, name, this.#options.node);
  }

  async #end(clientId: string, connection: string, node: string): Promise<void> {
    await this.#redis.brokerEndSession(clientId, connection, node, this.#now());
  }

  /** Tells the other nodes that this one is alive. Throws if Redis is unavailable. */
  async renewLease(): Promise<void> {
    await this.#redis.brokerRenewLease(this.#options.node, LEASE_S);
  }

  /** Ends the sessions of nodes that are no longer alive. */
  async endSessionsOfDeadNodes(): Promise<void> {
    for (const node of await this.#redis.smembers(KEYS.nodes)) {
      if ((await this.#redis.exists(KEYS.lease(node))) === 1) continue;
      await this.endSessionsOf(node);
      await this.#redis.srem(KEYS.nodes, node);
    }
  }

  /** Ends the sessions of a node that has no connections, but could not say so. */
  async endSessionsOf(node: string): Promise<void> {
    const clientIds = await this.#redis.smembers(KEYS.connected(node));
    const end = async (clientId: string): Promise<void> => {
      const connection = await this.#redis.hget(KEYS.session(clientId), "connection");
      await this.#end(clientId, connection?.startsWith(`${node} `) ? connection : "", node);
    };
    for (let i = 0; i < clientIds.length; i += AT_ONCE) await Promise.all(clientIds.slice(i, i + AT_ONCE).map(end));
  }

  /** Removes the sessions that were unused for too long. */
  async removeExpired(): Promise<void> {
    const nowMs = this.#now();
    // No session expires earlier than those of agents.
    const rows = await this.#redis.zrangebyscore(KEYS.ended, "-inf", nowMs - AGENT_SESSION_MS, "WITHSCORES");
    for (let i = 0; i < rows.length; i += 2) {
      const [id = "", endedMs] = [rows[i], Number(rows[i + 1])];
      if (nowMs - endedMs > keptMsOf(id)) await this.#remove(id);
    }
  }

  async owners(): Promise<Iterable<string>> {
    return await this.#redis.smembers(KEYS.agents);
  }

  async removeAgent(apId: string): Promise<void> {
    for (const id of await this.#redis.smembers(KEYS.agent(apId))) await this.#remove(id);
  }

  async #remove(id: string, isDisconnected = true): Promise<void> {
    const session = await this.#redis.hgetall(KEYS.session(id));
    if (session.opened === undefined) return;
    if (session.connection !== undefined && isDisconnected) this.#options.disconnect(id);
    await this.#options.removeSession(id);
    const owner = ownerOf(id);
    // Last, so that after a kill before this line the session still expires.
    await transact(this.#redis, (multi) => {
      multi.del(KEYS.session(id));
      multi.zrem(KEYS.ended, id);
      if (owner !== undefined) multi.srem(KEYS.agent(owner), id);
    });
    if (owner === undefined) return;
    // In this order, because the agent may open another session at the same time.
    await this.#redis.srem(KEYS.agents, owner);
    if ((await this.#redis.exists(KEYS.agent(owner))) === 1) await this.#redis.sadd(KEYS.agents, owner);
  }
}
