import { Readable } from "node:stream";
import type { AedesPublishPacket, Client, PublishPacket, Subscription } from "aedes";
import type { Redis } from "ioredis";
import { AGENT_LIMIT, SERVICE_LIMIT } from "../limits.ts";
import { disableDuplicateFilter } from "../message-ids.ts";
import { type BrokerPersistence, type CanReceive, isFilter } from "../store.ts";
import { KEYS, transact } from "./keys.ts";
import { QueueSender } from "./queue-sender.ts";

/** The broker id of messages that are in the queues of their subscribers. Their counter is the number of the message in Redis. */
export const STORED = "stored";

const INCOMING_S = 24 * 3_600;
const SHARED = /^\$share\/[^/]+\/(.+)$/s;
const isWildcard = (filter: string): boolean => /[+#]/.test(filter) || SHARED.test(filter);
const asField = (filter: string, clientId: string): string => JSON.stringify([filter, clientId]);
const toJson = (packet: PublishPacket): string =>
  JSON.stringify({ ...packet, payload: Buffer.from(packet.payload).toString("base64") });
const fromJson = (json: string): AedesPublishPacket => {
  const packet = JSON.parse(json) as AedesPublishPacket & { payload: string };
  return { ...packet, payload: Buffer.from(packet.payload, "base64") };
};

/**
 * The subscriptions and queued messages of the clients of all nodes, in Redis. A node keeps none of it in memory, so no node can miss a
 * subscription of another one.
 *
 * aedes sends no stored message. Each connected client with a persistent session has a `QueueSender`, which reads its queue.
 */
export class RedisPersistence implements BrokerPersistence {
  readonly #redis: Redis;
  readonly #canReceive: CanReceive;
  readonly #limits: [number, number, number, number];
  /** By connection: the message ids of an earlier connection of the same client mean other messages. */
  readonly #senders = new Map<Client, QueueSender>();
  /** The dead nodes whose last wills this node publishes, by client id. */
  readonly #deadNodes = new Map<string, Set<string>>();
  #brokerId = "";

  constructor(redis: Redis, canReceive: CanReceive, { agent = AGENT_LIMIT, service = SERVICE_LIMIT } = {}) {
    this.#redis = redis;
    this.#canReceive = canReceive;
    this.#limits = [agent.messages, agent.bytes, service.messages, service.bytes];
  }

  async setup({ id }: { id: string }): Promise<void> {
    this.#brokerId = id;
  }

  /** The messages of several nodes do not arrive in the order of their numbers. */
  async prepare(client: Client): Promise<void> {
    disableDuplicateFilter(client, [STORED]);
    if (client.clean || client.conn.destroyed) return;
    const sender = new QueueSender(this.#redis, client, this.#canReceive);
    this.#senders.set(client, sender);
    client.conn.once("close", () => {
      sender.stop();
      this.#senders.delete(client);
    });
  }

  /** The senders of the clients that are connected to this node. */
  get senders(): Iterable<QueueSender> {
    return this.#senders.values();
  }

  /**
   * Returns the filter under which aedes subscribes a client, so that its sender wakes up. A shared subscription is for clients with queues:
   * its messages go to the queue of one of them.
   */
  filterOf({ clean }: Client, filter: string): string | undefined {
    const [, shared] = SHARED.exec(filter) ?? [];
    if (shared === undefined) return filter;
    return clean ? undefined : shared;
  }

  /** Returns whether aedes may send a message. If not, lets the client's sender look for it. */
  forwards(client: Client, { brokerId }: AedesPublishPacket): boolean {
    if (client.clean || brokerId !== STORED) return true;
    this.#senders.get(client)?.wake();
    return false;
  }

  async storeBeforeAcknowledging(packet: PublishPacket): Promise<void> {
    if (packet.retain) await this.#storeRetained(packet);
    // aedes copies both fields when it creates its own packet from this one.
    Object.assign(packet, { brokerId: STORED, brokerCounter: await this.#enqueue(packet) });
  }

  async #enqueue({ topic, qos, payload }: PublishPacket): Promise<number> {
    return await this.#redis.brokerEnqueue(topic, qos, payload, ...this.#limits);
  }

  /** Redis itself looks for the subscribers of a message. */
  async subscriptionsByTopic(): Promise<Subscription[]> {
    return [];
  }

  async outgoingEnqueueCombi(_subscriptions: Subscription[], packet: AedesPublishPacket): Promise<void> {
    if (packet.brokerId === STORED) return;
    Object.assign(packet, { brokerId: STORED, brokerCounter: await this.#enqueue(packet) });
  }

  /** Each sender sends its queue. */
  outgoingStream(): Readable {
    return Readable.from([]);
  }

  async outgoingUpdate(client: Client, packet: { cmd: string; messageId: number }): Promise<void> {
    if (packet.cmd === "publish") this.#senders.get(client)?.sending(packet.messageId);
  }

  async outgoingClearMessageId(client: Client, { messageId }: { messageId: number }): Promise<undefined> {
    await this.#senders.get(client)?.acknowledge(messageId);
  }

  /** Stores only allowed subscriptions with a valid filter. aedes would store all subscriptions of a request if one of them is allowed. */
  async addSubscriptions(client: Client, subscriptions: Subscription[]): Promise<void> {
    const allowed = subscriptions.filter(({ topic }) => isFilter(topic) && this.#canReceive(client, topic));
    for (const { topic, qos } of allowed)
      await this.#redis.brokerSubscribe(client.id, topic, qos, isWildcard(topic) ? asField(topic, client.id) : "");
  }

  async removeSubscriptions({ id }: { id: string }, topics: readonly string[]): Promise<void> {
    await transact(this.#redis, (multi) => {
      for (const topic of topics) {
        multi.hdel(KEYS.subscriptions(id), topic);
        if (isWildcard(topic)) multi.hdel(KEYS.wildcards, asField(topic, id));
        else multi.hdel(KEYS.subscribers(topic), id);
      }
    });
  }

  async cleanSubscriptions(client: { id: string }): Promise<void> {
    await this.removeSubscriptions(client, await this.#redis.hkeys(KEYS.subscriptions(client.id)));
  }

  async subscriptionsByClient({ id }: { id: string }): Promise<{ topic: string; qos: number }[]> {
    const rows = await this.#redis.hgetall(KEYS.subscriptions(id));
    return Object.entries(rows).map(([topic, qos]) => ({ topic, qos: Number(qos) }));
  }

  /** Removes the subscriptions and all messages of a client. */
  async removeSession(clientId: string): Promise<void> {
    await this.cleanSubscriptions({ id: clientId });
    await transact(this.#redis, (multi) => {
      multi.del(KEYS.queue(clientId), KEYS.incoming(clientId));
      multi.hdel(KEYS.bytes, clientId);
    });
  }

  async storeRetained(packet: AedesPublishPacket): Promise<void> {
    if (packet.brokerId !== STORED) await this.#storeRetained(packet);
  }

  async #storeRetained(packet: PublishPacket): Promise<void> {
    if (packet.payload.length === 0) await this.#redis.hdel(KEYS.retained, packet.topic);
    else await this.#redis.hset(KEYS.retained, packet.topic, toJson(packet));
  }

  createRetainedStreamCombi(filters: readonly string[]): Readable {
    // aedes does not handle errors of this stream.
    return Readable.from(this.#retained(filters)).on("error", () => {});
  }

  async *#retained(filters: readonly string[]): AsyncGenerator<AedesPublishPacket> {
    for (const filter of filters.filter((filter) => !isWildcard(filter))) {
      const json = await this.#redis.hget(KEYS.retained, filter);
      if (json !== null) yield fromJson(json);
    }
    const wildcards = filters.filter(isWildcard);
    if (wildcards.length === 0) return;
    for await (const row of this.#redis.hscanStream(KEYS.retained) as AsyncIterable<string[]>)
      for (let i = 0; i < row.length; i += 2)
        if (wildcards.some((filter) => matches(filter, row[i] ?? ""))) yield fromJson(row[i + 1] ?? "");
  }

  async incomingStorePacket({ id }: Client, packet: PublishPacket & { messageId: number }): Promise<void> {
    await transact(this.#redis, (multi) => {
      multi.hset(KEYS.incoming(id), packet.messageId, toJson(packet));
      multi.expire(KEYS.incoming(id), INCOMING_S);
    });
  }

  async incomingGetPacket({ id }: Client, { messageId }: { messageId: number }): Promise<AedesPublishPacket> {
    const json = await this.#redis.hget(KEYS.incoming(id), String(messageId));
    if (json === null) throw new Error("no such packet");
    return fromJson(json);
  }

  async incomingDelPacket({ id }: Client, { messageId }: { messageId: number }): Promise<void> {
    await this.#redis.hdel(KEYS.incoming(id), String(messageId));
  }

  async cleanIncoming({ id }: Client): Promise<void> {
    await this.#redis.del(KEYS.incoming(id));
  }

  /** A last will belongs to the connection at this node. Another node publishes it if this one dies. */
  async putWill({ id }: Client, packet: AedesPublishPacket): Promise<void> {
    Object.assign(packet, { clientId: id, brokerId: this.#brokerId });
    await this.#redis.hset(KEYS.wills, JSON.stringify([this.#brokerId, id]), toJson(packet));
  }

  async delWill({ id, brokerId = this.#brokerId }: { id: string; brokerId?: string }): Promise<void> {
    // A will that was published is marked as stored, so its node is no longer known.
    const nodes = brokerId === STORED ? (this.#deadNodes.get(id) ?? []) : [brokerId];
    this.#deadNodes.delete(id);
    for (const node of nodes) await this.#redis.hdel(KEYS.wills, JSON.stringify([node, id]));
  }

  streamWill(brokers: Record<string, unknown> = {}): Readable {
    return Readable.from(this.#wills(brokers));
  }

  async *#wills(brokers: Record<string, unknown>): AsyncGenerator<AedesPublishPacket> {
    for (const json of await this.#redis.hvals(KEYS.wills)) {
      const will = fromJson(json) as AedesPublishPacket & { clientId: string };
      if (will.brokerId in brokers) continue;
      const nodes = this.#deadNodes.get(will.clientId) ?? new Set();
      this.#deadNodes.set(will.clientId, nodes.add(will.brokerId));
      yield will;
    }
  }
}

/** Like the function of that name in the scripts. */
function matches(filter: string, topic: string): boolean {
  if (/^[+#]/.test(filter) && topic.startsWith("$")) return false;
  const [levels, topicLevels] = [filter.split("/"), topic.split("/")];
  const isAll = levels.at(-1) === "#";
  if (isAll) levels.pop();
  if (isAll ? topicLevels.length < levels.length : topicLevels.length !== levels.length) return false;
  return levels.every((level, i) => level === "+" || level === topicLevels[i]);
}
