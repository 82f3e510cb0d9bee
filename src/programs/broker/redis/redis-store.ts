import { randomUUID } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import { Redis } from "ioredis";
import createEmitter from "mqemitter-redis";
import { print } from "../../shared/cli.ts";
import { isOfAgent } from "../limits.ts";
import { type BrokerStore, SESSION_EXPIRY_MS, type StoreEvents } from "../store.ts";
import { RedisPersistence } from "./redis-persistence.ts";
import { RedisSessions } from "./redis-sessions.ts";
import { defineScripts } from "./scripts.ts";

/**
 * The store of several brokers that work as one. Every node accepts every client: sessions, subscriptions and queues are in Redis, and
 * Redis carries the messages from node to node. While a node cannot reach Redis, it accepts no connections.
 */

/** A command that waits longer than this has failed: its client retries, at this node or at another one. */
const COMMAND_TIMEOUT_MS = 5_000;
const LEASE_RENEWAL_MS = 2_000;
const DEAD_NODES_MS = 5_000;
const RECONNECT_MS = 250;
/** Wake-ups that got lost between the nodes delay the messages for services no longer than this. Commands to agents are repeated anyway. */
const POLL_MS = 2_000;
const EVICTION_TOPIC = "$SYS/evictions";
const CONCURRENCY = 100;

export async function openRedisStore(url: string, events: StoreEvents): Promise<BrokerStore> {
  const [commands, publisher, subscriber] = [connect(url), connect(url), connect(url, false)];
  defineScripts(commands);
  await untilAvailable(commands);
  await warnIfVolatile(commands);

  const id = randomUUID();
  const mq = createEmitter({ subConn: subscriber, pubConn: publisher, concurrency: CONCURRENCY });
  // The lease shows whether Redis is available. Without a listener, an error would end this process.
  (mq as typeof mq & { state: NodeJS.EventEmitter }).state.on("error", () => {});
  const persistence = new RedisPersistence(commands, events.canReceive);
  const sessions = new RedisSessions(commands, {
    node: id,
    disconnect: (clientId) => mq.emit({ topic: EVICTION_TOPIC, payload: clientId }, () => {}),
    removeSession: (clientId) => persistence.removeSession(clientId),
  });

  let isBroken = false;
  const renewLease = async (): Promise<void> => {
    try {
      await sessions.renewLease();
      if (isBroken) {
        await sessions.endSessionsOf(id);
        isBroken = false;
        events.onHealed("Redis is available again");
      }
    } catch (error) {
      if (!isBroken) events.onBroken(`Redis is not available: ${(error as Error).message}`);
      isBroken = true;
    }
  };
  const endSessions = async (): Promise<void> => {
    if (!isBroken) await sessions.endSessionsOfDeadNodes();
  };
  const pollForServices = (): void => {
    for (const sender of persistence.senders) if (!isOfAgent(sender.clientId)) sender.wake();
  };

  return {
    id,
    mq,
    persistence,
    sessions,
    async start() {
      mq.on(EVICTION_TOPIC, ({ payload }, done) => {
        events.disconnect(String(payload));
        done();
      });
      await sessions.renewLease();
      every(LEASE_RENEWAL_MS, renewLease);
      // In its own time: a node may have had many clients.
      every(DEAD_NODES_MS, endSessions);
      every(SESSION_EXPIRY_MS, () => sessions.removeExpired());
      setInterval(pollForServices, POLL_MS).unref();
    },
    filterOf: (client, filter) => persistence.filterOf(client, filter),
    forwards: (client, packet) => persistence.forwards(client, packet),
  };
}

/** A connection that subscribes cannot gather commands. */
function connect(url: string, enableAutoPipelining = true): Redis {
  const redis = new Redis(url, {
    commandTimeout: COMMAND_TIMEOUT_MS,
    connectTimeout: COMMAND_TIMEOUT_MS,
    maxRetriesPerRequest: 1,
    retryStrategy: () => RECONNECT_MS,
    enableAutoPipelining,
  });
  return redis.on("error", () => {});
}

async function untilAvailable(redis: Redis): Promise<void> {
  for (let isPrinted = false; ; isPrinted = true) {
    try {
      await redis.ping();
      return;
    } catch (error) {
      if (!isPrinted) print(`Waiting for Redis: ${(error as Error).message}`);
      await sleep(RECONNECT_MS);
    }
  }
}

/** Managed servers may not tell. */
async function warnIfVolatile(redis: Redis): Promise<void> {
  const [, value] = ((await redis.config("GET", "appendonly").catch(() => [])) as string[]) ?? [];
  if (value === "no")
    print("Redis loses acknowledged messages if it is killed. Set appendonly to yes in its configuration.");
}

/** Repeats work, and waits for its end each time. A failure is retried with the next turn. */
function every(ms: number, work: () => Promise<void>): void {
  setTimeout(() => {
    work()
      .catch(() => {})
      .finally(() => every(ms, work));
  }, ms).unref();
}
