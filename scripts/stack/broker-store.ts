import type { AedesPublishPacket, Client, PublishPacket, Subscription } from "aedes";
import AsyncLevelPersistence from "aedes-persistence-level/asyncPersistence.js";
import type { ClassicLevel } from "classic-level";

/**
 * What the broker owes its clients, on disk.
 *
 * aedes acknowledges a message of QoS 1 and stores it afterwards; a broker that is killed in between loses what it has acknowledged.
 * Here such a message is stored ahead, before aedes gets to acknowledge it. It bears a mark of its own, by which the store knows it
 * when aedes comes to store it.
 */
export class BrokerStore extends AsyncLevelPersistence {
  readonly #brokerId: string;
  readonly #mark: string;
  #count = 0;
  #former: Promise<void> = Promise.resolve();

  /** Whoever starts later has a greater id: what is owed is delivered in the order of ids. */
  constructor(level: ClassicLevel, brokerId: string) {
    super(level);
    this.#brokerId = brokerId;
    this.#mark = `${brokerId}-stored`;
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

  override async outgoingUpdate(client: Client, packet: AedesPublishPacket): Promise<void> {
    try {
      await super.outgoingUpdate(client, packet);
    } catch (error) {
      // A message that comes while its listener connects is sent twice, as owed and as new. Once one copy is acknowledged there is
      // nothing to note about the other; to aedes that would be a reason to close the connection.
      if ((error as Error).message !== "no such packet") throw error;
    }
  }

  /**
   * To aedes a message that a later one has overtaken is a duplicate, which it does not deliver. But writes to the disk do not end in
   * the order in which they began, and QoS 0 waits for none: without this, such a message would wait until its listener connects
   * again. (A client whose subscriptions overlap gets one copy for each instead, as MQTT allows.)
   */
  deliverOvertaken(client: Client): void {
    const { duplicates } = client as Client & { duplicates?: object };
    if (duplicates === undefined) throw new Error("This aedes tells duplicates in another way");
    const none = { get: () => 0, set: () => {} };
    Object.defineProperties(duplicates, { [this.#brokerId]: none, [this.#mark]: none });
  }
}
