import type { AedesPublishPacket, Client, PublishPacket, Subscription } from "aedes";
import AsyncLevelPersistence from "aedes-persistence-level/asyncPersistence.js";
import type { ClassicLevel } from "classic-level";

/** Messages on their way to a client are told apart by sixteen bits, none of them zero. */
const MAX_NUMBER = 65_535;

/** Whether a client may hear what this topic, or filter, stands for. */
export type MayHear = (client: Client, topic: string) => boolean;

/**
 * What the broker owes its clients, on disk.
 *
 * aedes acknowledges a message of QoS 1 and stores it afterwards; a broker that is killed in between loses what it has acknowledged.
 * Here such a message is stored ahead, before aedes gets to acknowledge it. It bears a mark of its own, by which the store knows it
 * when aedes comes to store it.
 */
export class BrokerStore extends AsyncLevelPersistence {
  readonly #level: ClassicLevel;
  readonly #brokerId: string;
  readonly #mark: string;
  /** Of clients that are owed what they have not acknowledged. */
  readonly #numbers = new Map<string, { next: number; inUse: Set<number> }>();
  readonly #mayHear: MayHear;
  #count = 0;
  #former: Promise<void> = Promise.resolve();

  /** Whoever starts later has a greater id: what is owed is delivered in the order of ids. */
  constructor(level: ClassicLevel, brokerId: string, mayHear: MayHear) {
    super(level);
    this.#level = level;
    this.#brokerId = brokerId;
    this.#mark = `${brokerId}-stored`;
    this.#mayHear = mayHear;
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
