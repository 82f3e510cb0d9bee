import type { AedesPublishPacket, Client, PublishPacket, Subscription } from "aedes";
import AsyncLevelPersistence from "aedes-persistence-level/asyncPersistence.js";
import type { ClassicLevel } from "classic-level";
import { isOfAgent } from "./sessions.ts";

/** Messages on their way to a client are told apart by sixteen bits, none of them zero. */
const MAX_NUMBER = 65_535;

/** What is kept for a client at the most. Beyond that the oldest messages go. */
export interface QueueLimit {
  messages: number;
  bytes: number;
}

/**
 * An agent is sent a command every ten seconds at the most, which is published up to eight times and valid for a minute: what comes before
 * the newest hundred messages has expired.
 */
const AGENT_LIMIT: QueueLimit = { messages: 100, bytes: 256 * 1024 };
/** Telemetry for a bridge that is away. It must not fill the disk, which would stop the broker for all. */
const SERVICE_LIMIT: QueueLimit = { messages: 10_000_000, bytes: 4 * 1024 ** 3 };
/** What stays of a queue that was too long, so that it is not read again for every further message. */
const KEPT_SHARE = 0.9;
const DELETED_AT_ONCE = 1_000;

/** Whether a client may hear what this topic, or filter, stands for. */
export type MayHear = (client: Client, topic: string) => boolean;

/**
 * What the broker owes its clients, on disk.
 *
 * aedes acknowledges a message of QoS 1 and stores it afterwards; a broker that is killed in between loses what it has acknowledged.
 * Here such a message is stored ahead, before aedes gets to acknowledge it. It bears a mark of its own, by which the store knows it
 * when aedes comes to store it.
 */
export class BrokerPersistence extends AsyncLevelPersistence {
  readonly #level: ClassicLevel;
  readonly #brokerId: string;
  readonly #mark: string;
  /** Of clients that are owed what they have not acknowledged. */
  readonly #numbers = new Map<string, { next: number; inUse: Set<number> }>();
  readonly #mayHear: MayHear;
  readonly #limitOf: (clientId: string) => QueueLimit;
  /** Upper bounds of what is kept, by client: they still count what was acknowledged since they were measured. */
  readonly #queues = new Map<string, { messages: number; bytes: number; isMeasured: boolean }>();
  #count = 0;
  #former: Promise<void> = Promise.resolve();

  /** Whoever starts later has a greater id: what is owed is delivered in the order of ids. */
  constructor(
    level: ClassicLevel,
    brokerId: string,
    mayHear: MayHear,
    limitOf = (clientId: string): QueueLimit => (isOfAgent(clientId) ? AGENT_LIMIT : SERVICE_LIMIT),
  ) {
    super(level);
    this.#level = level;
    this.#brokerId = brokerId;
    this.#mark = `${brokerId}-stored`;
    this.#mayHear = mayHear;
    this.#limitOf = limitOf;
  }

  /** To aedes a client that may have one of the subscriptions that it asks for at once may have the others kept, too. */
  override async addSubscriptions(client: Client, subscriptions: Subscription[]): Promise<void> {
    const allowed = subscriptions.filter(({ topic }) => this.#mayHear(client, topic));
    await super.addSubscriptions(client, allowed);
  }

  /** Comes true when the message is on disk for everyone who is owed it, and so are all that came before it: order is kept. */
  async storeAhead(packet: PublishPacket): Promise<void> {
    // aedes takes over both when it makes a packet of its own out of this one.
    const marked = Object.assign(packet, { brokerId: this.#mark, brokerCounter: ++this.#count });
    const former = this.#former;
    const stored = this.#store(marked);
    // Without its outcome, which would hold that of the one before, and so on.
    this.#former = Promise.allSettled([former, stored]).then(() => {});
    await former;
    await stored;
  }

  async #store(packet: AedesPublishPacket): Promise<void> {
    if (packet.retain) await super.storeRetained(packet);
    await super.outgoingEnqueueCombi(await this.subscriptionsByTopic(packet.topic), packet);
  }

  override async storeRetained(packet: AedesPublishPacket): Promise<void> {
    if (packet.brokerId !== this.#mark) await super.storeRetained(packet);
  }

  override async outgoingEnqueueCombi(subscriptions: Subscription[], packet: AedesPublishPacket): Promise<void> {
    if (packet.brokerId !== this.#mark) await super.outgoingEnqueueCombi(subscriptions, packet);
  }

  override async outgoingEnqueue(subscription: { clientId: string }, packet: AedesPublishPacket): Promise<void> {
    await super.outgoingEnqueue(subscription, packet);
    this.#limit(subscription.clientId, packet);
  }

  /** Counts a message, and shortens the queue in the background if it may be too long. */
  #limit(clientId: string, packet: AedesPublishPacket): void {
    const limit = this.#limitOf(clientId);
    const queue = this.#queues.get(clientId) ?? { messages: 0, bytes: 0, isMeasured: false };
    const isNew = !this.#queues.has(clientId);
    this.#queues.set(clientId, queue);
    queue.messages++;
    queue.bytes += bytesOf(packet);
    if (!isNew && (!queue.isMeasured || (queue.messages <= limit.messages && queue.bytes <= limit.bytes))) return;
    // Counts what comes while the queue is read; that may be counted twice.
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

  /** Removes the oldest messages of a queue that is too long. Returns what is left. */
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

  /** The clients for which something is kept. */
  async clientIds(): Promise<Set<string>> {
    const ids = new Set<string>();
    for (const kind of ["subscriptions", "outgoing"]) {
      // From one client to the next, past what is kept for each.
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

  /** Removes a client's subscriptions and everything that is kept for it. */
  async removeSession(clientId: string): Promise<void> {
    await this.cleanSubscriptions({ id: clientId });
    for (const kind of ["outgoing", "outgoing-id", "incoming"]) {
      const prefix = `${kind}:${encodeURIComponent(clientId)}`;
      await this.#level.clear({ gt: `${prefix}:`, lt: `${prefix};` });
    }
    this.#numbers.delete(clientId);
    this.#queues.delete(clientId);
  }

  override async outgoingUpdate(client: Client, packet: AedesPublishPacket & { messageId: number }): Promise<void> {
    this.#numbers.get(client.id)?.inUse.add(packet.messageId);
    try {
      await super.outgoingUpdate(client, packet);
    } catch (error) {
      // A message that comes while its listener connects is sent twice, as owed and as new. Once one copy is acknowledged there is
      // nothing to note about the other; to aedes that would be a reason to close the connection.
      if ((error as Error).message !== "no such packet") throw error;
    }
  }

  /** To be called for everyone who comes, before anything is sent. */
  async prepare(client: Client): Promise<void> {
    this.#deliverOvertaken(client);
    if (!client.clean) await this.#numberApart(client);
  }

  /**
   * aedes begins to number what it sends at some number on each connection, while what was not acknowledged on an earlier one keeps
   * the number that it had. Sooner or later two messages on their way have the same, and the acknowledgement of one of them strikes
   * out the other, which is lost if the connection ends before it arrives. Here a client has one row of numbers on all of its
   * connections, and those in use are passed over.
   */
  async #numberApart(client: Client): Promise<void> {
    const prefix = `outgoing-id:${encodeURIComponent(client.id)}:`;
    const inUse = new Set<number>();
    for await (const key of this.#level.keys({ gt: prefix, lt: `${prefix.slice(0, -1)};` }))
      inUse.add(Number(key.slice(prefix.length)));
    const numbers = this.#numbers.get(client.id) ?? { next: 1, inUse };
    numbers.inUse = inUse;
    this.#numbers.set(client.id, numbers);
    if (!("_nextId" in client)) throw new Error("This aedes numbers messages in another way");
    Object.defineProperty(client, "_nextId", {
      get: () => {
        for (let i = 0; i < MAX_NUMBER && numbers.inUse.has(numbers.next); i++)
          numbers.next = (numbers.next % MAX_NUMBER) + 1;
        return numbers.next;
      },
      set: (next: number) => {
        numbers.next = next;
      },
    });
  }

  override async outgoingClearMessageId(
    client: Client,
    packet: { messageId: number },
  ): Promise<AedesPublishPacket | undefined> {
    const cleared = await super.outgoingClearMessageId(client, packet);
    this.#numbers.get(client.id)?.inUse.delete(packet.messageId);
    return cleared;
  }

  /**
   * To aedes a message that a later one has overtaken is a duplicate, which it does not deliver. But writes to the disk do not end in
   * the order in which they began, and QoS 0 waits for none: without this, such a message would wait until its listener connects
   * again. (A client whose subscriptions overlap gets one copy for each instead, as MQTT allows.)
   */
  #deliverOvertaken(client: Client): void {
    const { duplicates } = client as Client & { duplicates?: object };
    if (duplicates === undefined) throw new Error("This aedes tells duplicates in another way");
    const none = { get: () => 0, set: () => {} };
    Object.defineProperties(duplicates, { [this.#brokerId]: none, [this.#mark]: none });
  }
}

type QueuedPacket = AedesPublishPacket & { messageId?: number };

const bytesOf = ({ topic, payload }: AedesPublishPacket): number => topic.length + payload.length;

/** As aedes-persistence-level stores a message that is kept for a client, and its number once it has been sent. */
function keysOf(clientId: string, { brokerId, brokerCounter, messageId }: QueuedPacket): string[] {
  const [id, pad] = [encodeURIComponent(clientId), (number: number) => String(number).padStart(16, "0")];
  const sent = messageId === undefined || messageId === 0 ? [] : [`outgoing-id:${id}:${pad(messageId)}`];
  return [`outgoing:${id}:${brokerId}:${pad(brokerCounter)}`, ...sent];
}
