import type { AedesPublishPacket, Client } from "aedes";
import type { Redis } from "ioredis";
import { assignUniqueMessageIds } from "../message-ids.ts";
import type { CanReceive } from "../store.ts";
import { KEYS } from "./keys.ts";

/**
 * Sends the queue of one connected client, in order and from its beginning: what an earlier connection did not acknowledge is sent again.
 * Waits while too many messages are unacknowledged, so that a client that reads slowly fills its queue and not the memory of the broker.
 */

const PAGE = 200;
const MAX_UNACKNOWLEDGED = 10_000;

export class QueueSender {
  readonly #redis: Redis;
  readonly #client: Client;
  readonly #canReceive: CanReceive;
  /** The numbers of the messages that the client has not acknowledged, by message id. */
  readonly #unacknowledged = new Map<number, number>();
  /** The number of the message that was sent last. */
  #sent = 0;
  #sending = 0;
  #isRunning = false;
  #isWoken = false;
  #isStopped = false;

  constructor(redis: Redis, client: Client, canReceive: CanReceive) {
    this.#redis = redis;
    this.#client = client;
    this.#canReceive = canReceive;
    assignUniqueMessageIds(client, { next: 1, inUse: this.#unacknowledged });
    client.once("connected", () => this.wake());
  }

  get clientId(): string {
    return this.#client.id;
  }

  /** Looks for messages to send. */
  wake(): void {
    this.#isWoken = true;
    if (this.#isRunning || this.#isStopped || !this.#client.connected) return;
    this.#isRunning = true;
    // After a failure, the next wake-up tries again.
    this.#run().catch(() => {});
  }

  stop(): void {
    this.#isStopped = true;
  }

  /** Records the message id under which the current message is sent. */
  sending(messageId: number): void {
    this.#unacknowledged.set(messageId, this.#sending);
  }

  async acknowledge(messageId: number): Promise<void> {
    const number = this.#unacknowledged.get(messageId);
    if (number === undefined) return;
    await this.#redis.brokerAcknowledge(this.#client.id, number);
    this.#unacknowledged.delete(messageId);
    if (this.#unacknowledged.size === MAX_UNACKNOWLEDGED / 2) this.wake();
  }

  async #run(): Promise<void> {
    try {
      while (this.#isWoken && !this.#isStopped) {
        this.#isWoken = false;
        for (let isMore = true; isMore && !this.#isStopped; ) isMore = await this.#sendPage();
      }
    } finally {
      // No wake-up can come between the last check of `#isWoken` and this line: both are synchronous.
      this.#isRunning = false;
    }
  }

  /** Sends some messages. Returns whether there may be more. */
  async #sendPage(): Promise<boolean> {
    const room = Math.min(PAGE, MAX_UNACKNOWLEDGED - this.#unacknowledged.size);
    if (room <= 0) return false;
    const key = KEYS.queue(this.#client.id);
    const entries = await this.#redis.xrangeBuffer(key, `(${this.#sent}-0`, "+", "COUNT", room);
    for (const [id, fields] of entries) {
      if (this.#isStopped) return false;
      const number = Number.parseInt(id.toString(), 10);
      this.#sending = number;
      const packet = packetOf(fields);
      const isAllowed = this.#canReceive(this.#client, packet.topic);
      if (isAllowed) await this.#send(packet);
      this.#sent = number;
      if (!isAllowed || packet.qos === 0) await this.#redis.brokerAcknowledge(this.#client.id, number);
    }
    return entries.length === room;
  }

  /** Resolves when the message is written to the connection. */
  #send(packet: AedesPublishPacket): Promise<void> {
    const { deliverQoS } = this.#client as Client & { deliverQoS?(packet: AedesPublishPacket, done: () => void): void };
    if (deliverQoS === undefined) throw new Error("This version of aedes delivers messages differently");
    return new Promise((resolve) => deliverQoS(packet, resolve));
  }
}

/** Without a broker id: aedes must not take it for a message that the queue will send. */
function packetOf(fields: readonly Buffer[]): AedesPublishPacket {
  const [, topic = "", , qos = "1", , payload = ""] = fields;
  const packet = {
    cmd: "publish",
    topic: topic.toString(),
    qos: Number(qos.toString()),
    payload,
    retain: false,
    dup: false,
  };
  return packet as AedesPublishPacket;
}
