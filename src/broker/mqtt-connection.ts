import {
  type ConnectOptions,
  connectPacket,
  DISCONNECT_PACKET,
  idOf,
  KIND,
  type Packet,
  PacketReader,
  PING_PACKET,
  publishPacket,
} from "./packets.ts";
import { openTransport, type Transport } from "./transport.ts";

/** A connection to the broker, for somebody who publishes and nothing else. */
export class BrokerConnection {
  readonly #reader = new PacketReader();
  readonly #greeted = Promise.withResolvers<void>();
  readonly #waiting = new Map<number, PromiseWithResolvers<void>>();
  #wire: Transport | undefined;
  #lastId = 0;
  #ended: Error | undefined;
  #pinging: ReturnType<typeof setInterval> | undefined;

  private constructor() {
    // Whoever opens it learns it where it waits; nobody else need hear of it.
    this.#greeted.promise.catch(() => {});
  }

  static async open(url: string, options: ConnectOptions, signal: AbortSignal): Promise<BrokerConnection> {
    const connection = new BrokerConnection();
    signal.addEventListener("abort", () => connection.#greeted.reject(signal.reason), { once: true });
    const events = {
      onBytes: (bytes: Uint8Array) => connection.#read(bytes),
      onClose: (error: Error) => connection.#end(error),
    };
    connection.#wire = await openTransport(url, events, signal);
    try {
      connection.#send(connectPacket(options));
      await connection.#greeted.promise;
    } catch (error) {
      connection.close();
      throw error;
    }
    connection.#pinging = setInterval(() => connection.#send(PING_PACKET), (options.keepAliveS * 1000) / 2);
    return connection;
  }

  get isOpen(): boolean {
    return this.#ended === undefined;
  }

  /** Comes true when the broker has acknowledged the message. */
  async publish(topic: string, payload: string): Promise<void> {
    if (this.#ended !== undefined) throw this.#ended;
    if (/[#+\0]/.test(topic)) throw new Error("A topic has no wildcards");
    const id = this.#nextId();
    const acknowledged = Promise.withResolvers<void>();
    this.#waiting.set(id, acknowledged);
    this.#send(publishPacket(id, topic, payload));
    await acknowledged.promise;
  }

  close(): void {
    if (this.isOpen) this.#send(DISCONNECT_PACKET);
    this.#end(new Error("The connection was closed"));
    this.#wire?.close();
  }

  #send(bytes: Uint8Array): void {
    try {
      this.#wire?.send(bytes);
    } catch (error) {
      this.#end(error instanceof Error ? error : new Error("The connection to the broker broke"));
    }
  }

  #read(bytes: Uint8Array): void {
    try {
      for (const packet of this.#reader.add(bytes)) this.#take(packet);
    } catch (error) {
      this.#end(error as Error);
      this.#wire?.close();
    }
  }

  #take(packet: Packet): void {
    const [, returnCode = 0] = packet.body;
    if (packet.kind === KIND.connack) {
      if (returnCode === 0) this.#greeted.resolve();
      else this.#greeted.reject(new Error(`The broker refused the connection (${returnCode})`));
    } else if (packet.kind === KIND.puback) {
      const id = idOf(packet);
      this.#waiting.get(id)?.resolve();
      this.#waiting.delete(id);
    }
  }

  #end(error: Error): void {
    this.#ended ??= error;
    this.#greeted.reject(error);
    clearInterval(this.#pinging);
    for (const { reject } of this.#waiting.values()) reject(error);
    this.#waiting.clear();
  }

  /** From 1 to 65535, and none that is in use. */
  #nextId(): number {
    do this.#lastId = (this.#lastId % 0xffff) + 1;
    while (this.#waiting.has(this.#lastId));
    return this.#lastId;
  }
}
