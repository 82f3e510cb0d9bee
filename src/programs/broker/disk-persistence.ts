import type { AedesPublishPacket, Client, PublishPacket, Subscription } from "aedes";
import AsyncLevelPersistence from "aedes-persistence-level/asyncPersistence.js";
import type { ClassicLevel } from "classic-level";
import { type QueueLimit, queueLimitOf } from "./limits.ts";
import { assignUniqueMessageIds, disableDuplicateFilter } from "./message-ids.ts";
import { type BrokerPersistence, type CanReceive, isFilter } from "./store.ts";

/** The share of the limit that stays after a removal, so that the queue is not read again for every further message. */
const KEPT_SHARE = 0.9;
const DELETED_AT_ONCE = 1_000;

/**
 * The subscriptions and queued messages of the broker's clients, on disk.
 *
 * aedes acknowledges a QoS 1 message before it stores it, so a kill in between loses an acknowledged message. This class stores the
 * message before aedes acknowledges it, and marks it with a special broker id, so that it is not stored again when aedes tries to store it.
 */
export class DiskPersistence extends AsyncLevelPersistence implements BrokerPersistence {
  readonly #level: ClassicLevel;
  readonly #brokerId: string;
  readonly #storedBrokerId: string;
  /** The message ids of clients with persistent sessions. */
  readonly #messageIds = new Map<string, { next: number; inUse: Set<number> }>();
  readonly #canReceive: CanReceive;
  readonly #limitOf: (clientId: string) => QueueLimit;
  /** Upper bounds of the queue lengths, by client. They include messages that were acknowledged since the last measurement. */
  readonly #queues = new Map<string, { messages: number; bytes: number; isMeasured: boolean }>();
  #count = 0;
  #previous: Promise<void> = Promise.resolve();

  /** A later broker must have a greater id: queued messages are delivered in the order of broker ids. */
  constructor(
    level: ClassicLevel,
    brokerId: string,
    canReceive: CanReceive,
    limitOf: (clientId: string) => QueueLimit = queueLimitOf,
  ) {
    super(level);
    this.#level = level;
    this.#brokerId = brokerId;
    this.#storedBrokerId = `${brokerId}-stored`;
    this.#canReceive = canReceive;
    this.#limitOf = limitOf;
  }

  /**
   * Stores only allowed subscriptions with a valid filter. aedes would store all subscriptions of a request if one of them is allowed and
   * valid, and would then reject every further connection of the client because of an invalid one.
   */
  override async addSubscriptions(client: Client, subscriptions: Subscription[]): Promise<void> {
    const allowed = subscriptions.filter(({ topic }) => isFilter(topic) && this.#canReceive(client, topic));
    await super.addSubscriptions(client, allowed);
  }

  /** Resolves when this message and all earlier ones are on disk for their subscribers. This keeps the order. */
  async storeBeforeAcknowledging(packet: PublishPacket): Promise<void> {
    // aedes copies both fields when it creates its own packet from this one.
    const marked = Object.assign(packet, { brokerId: this.#storedBrokerId, brokerCounter: ++this.#count });
    const previous = this.#previous;
    const stored = this.#store(marked);
    // Drop the results: otherwise each one would hold the one before it in memory.
    this.#previous = Promise.allSettled([previous, stored]).then(() => {});
    await previous;
    await stored;
  }

  async #store(packet: AedesPublishPacket): Promise<void> {
    if (packet.retain) await super.storeRetained(packet);
    await super.outgoingEnqueueCombi(await this.subscriptionsByTopic(packet.topic), packet);
  }

  override async storeRetained(packet: AedesPublishPacket): Promise<void> {
    if (packet.brokerId !== this.#storedBrokerId) await super.storeRetained(packet);
  }

  override async outgoingEnqueueCombi(subscriptions: Subscription[], packet: AedesPublishPacket): Promise<void> {
    if (packet.brokerId !== this.#storedBrokerId) await super.outgoingEnqueueCombi(subscriptions, packet);
  }

  override async outgoingEnqueue(subscription: { clientId: string }, packet: AedesPublishPacket): Promise<void> {
    await super.outgoingEnqueue(subscription, packet);
    this.#enforceLimit(subscription.clientId, packet);
  }

  /** Counts a message, and shortens the queue in the background if it may exceed the limit. */
  #enforceLimit(clientId: string, packet: AedesPublishPacket): void {
    const limit = this.#limitOf(clientId);
    const queue = this.#queues.get(clientId) ?? { messages: 0, bytes: 0, isMeasured: false };
    const isNew = !this.#queues.has(clientId);
    this.#queues.set(clientId, queue);
    queue.messages++;
    queue.bytes += bytesOf(packet);
    if (!isNew && (!queue.isMeasured || (queue.messages <= limit.messages && queue.bytes <= limit.bytes))) return;
    // Count the messages that arrive while the queue is read. Some may be counted twice.
    Object.assign(queue, { messages: 0, bytes: 0, isMeasured: false });
    this.#shorten(clientId, limit).then(
      (left) => {
        queue.messages += left.messages;
        queue.bytes += left.bytes;
        queue.isMeasured = true;
      },
      // The next message tries again.
      () => this.#queues.delete(clientId),
    );
  }

  /** Removes the oldest messages of a queue that exceeds the limit. Returns the size of the remaining queue. */
  async #shorten(clientId: string, limit: QueueLimit): Promise<QueueLimit> {
    const left = { messages: 0, bytes: 0 };
    for await (const packet of this.outgoingStream({ id: clientId }) as AsyncIterable<QueuedPacket>) {
      left.messages++;
      left.bytes += bytesOf(packet);
    }
    if (left.messages <= limit.messages && left.bytes <= limit.bytes) return left;
    let keys: string[] = [];
    const isLong = () => left.messages > limit.messages * KEPT_SHARE || left.bytes > limit.bytes * KEPT_SHARE;
    for await (const packet of this.outgoingStream({ id: clientId }) as AsyncIterable<QueuedPacket>) {
      if (!isLong()) break;
      left.messages--;
      left.bytes -= bytesOf(packet);
      keys.push(...keysOf(clientId, packet));
      if (keys.length < DELETED_AT_ONCE) continue;
      await this.#delete(keys);
      keys = [];
    }
    await this.#delete(keys);
    return left;
  }

  async #delete(keys: readonly string[]): Promise<void> {
    await this.#level.batch(keys.map((key) => ({ type: "del" as const, key })));
  }

  /** Returns the clients that have subscriptions or queued messages. */
  async clientIds(): Promise<Set<string>> {
    const ids = new Set<string>();
    for (const kind of ["subscriptions", "outgoing"]) {
      // Jump from one client to the next, without reading the entries of each.
      for (let from = `${kind}:`; ; ) {
        const [key] = await this.#level.keys({ gte: from, lt: `${kind};`, limit: 1 }).all();
        const encoded = key?.split(":")[1];
        if (encoded === undefined) break;
        ids.add(decodeURIComponent(encoded));
        from = `${kind}:${encoded};`;
      }
    }
    return ids;
  }

  /** Removes the subscriptions and all messages of a client. */
  async removeSession(clientId: string): Promise<void> {
    await this.cleanSubscriptions({ id: clientId });
    for (const kind of ["outgoing", "outgoing-id", "incoming"]) {
      const prefix = `${kind}:${encodeURIComponent(clientId)}`;
      await this.#level.clear({ gt: `${prefix}:`, lt: `${prefix};` });
    }
    this.#messageIds.delete(clientId);
    this.#queues.delete(clientId);
  }

  override async outgoingUpdate(client: Client, packet: AedesPublishPacket & { messageId: number }): Promise<void> {
    this.#messageIds.get(client.id)?.inUse.add(packet.messageId);
    try {
      await super.outgoingUpdate(client, packet);
    } catch (error) {
      // A message that arrives while its subscriber connects is sent twice: as queued and as new. After one copy is acknowledged, the
      // other has no entry to update. aedes would close the connection because of that.
      if ((error as Error).message !== "no such packet") throw error;
    }
  }

  /**
   * Disk writes do not complete in the order in which they started, and QoS 0 messages wait for no write. With the duplicate filter, an
   * overtaken message would wait until its subscriber reconnects.
   */
  async prepare(client: Client): Promise<void> {
    disableDuplicateFilter(client, [this.#brokerId, this.#storedBrokerId]);
    if (client.clean) return;
    const prefix = `outgoing-id:${encodeURIComponent(client.id)}:`;
    const inUse = new Set<number>();
    for await (const key of this.#level.keys({ gt: prefix, lt: `${prefix.slice(0, -1)};` }))
      inUse.add(Number(key.slice(prefix.length)));
    const ids = this.#messageIds.get(client.id) ?? { next: 1, inUse };
    ids.inUse = inUse;
    this.#messageIds.set(client.id, ids);
    assignUniqueMessageIds(client, ids);
  }

  override async outgoingClearMessageId(
    client: Client,
    packet: { messageId: number },
  ): Promise<AedesPublishPacket | undefined> {
    const cleared = await super.outgoingClearMessageId(client, packet);
    this.#messageIds.get(client.id)?.inUse.delete(packet.messageId);
    return cleared;
  }
}

type QueuedPacket = AedesPublishPacket & { messageId?: number };

const bytesOf = ({ topic, payload }: AedesPublishPacket): number => topic.length + payload.length;

/** Returns the keys under which aedes-persistence-level stores a queued message and, once it was sent, its message id. */
function keysOf(clientId: string, { brokerId, brokerCounter, messageId }: QueuedPacket): string[] {
  const [id, pad] = [encodeURIComponent(clientId), (number: number) => String(number).padStart(16, "0")];
  const sent = messageId === undefined || messageId === 0 ? [] : [`outgoing-id:${id}:${pad(messageId)}`];
  return [`outgoing:${id}:${brokerId}:${pad(brokerCounter)}`, ...sent];
}
