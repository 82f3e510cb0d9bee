import {
  type ConnectOptions,
  connectPacket,
  DISCONNECT_PACKET,
  PACKET_TYPE,
  type Packet,
  PacketReader,
  PING_PACKET,
  packetIdOf,
  publishPacket,
} from "./packets.ts";
import { openTransport, type Transport } from "./transport.ts";

/** A connection to the broker that only publishes. */
export class BrokerConnection {
  readonly #reader = new PacketReader();
  readonly #connected = Promise.withResolvers<void>();
  /** Published messages without a PUBACK, by packet id. */
  readonly #unacknowledged = new Map<number, PromiseWithResolvers<void>>();
  #transport: Transport | undefined;
  #lastPacketId = 0;
  #closeReason: Error | undefined;
  #pingTimer: ReturnType<typeof setInterval> | undefined;

  private constructor() {
    // `open` awaits it and throws its error. At other times its rejection must not be reported as unhandled.
    this.#connected.promise.catch(() => {});
  }

  static async open(url: string, options: ConnectOptions, signal: AbortSignal): Promise<BrokerConnection> {
    const connection = new BrokerConnection();
    signal.addEventListener("abort", () => connection.#connected.reject(signal.reason), { once: true });
    const events = {
      onBytes: (bytes: Uint8Array) => connection.#read(bytes),
      onClose: (error: Error) => connection.#fail(error),
    };
    connection.#transport = await openTransport(url, events, signal);
    try {
      connection.#send(connectPacket(options));
      await connection.#connected.promise;
    } catch (error) {
      connection.close();
      throw error;
    }
    connection.#pingTimer = setInterval(() => connection.#send(PING_PACKET), (options.keepAliveS * 1000) / 2);
    return connection;
  }

  get isOpen(): boolean {
    return this.#closeReason === undefined;
  }

  /** Publishes a message. Resolves when the broker has acknowledged it. */
  async publish(topic: string, payload: string): Promise<void> {
    if (this.#closeReason !== undefined) throw this.#closeReason;
    if (/[#+\0]/.test(topic)) throw new Error("A topic must not contain wildcards");
    const id = this.#nextPacketId();
    const acknowledged = Promise.withResolvers<void>();
    this.#unacknowledged.set(id, acknowledged);
    this.#send(publishPacket(id, topic, payload));
    await acknowledged.promise;
  }

  close(): void {
    if (this.isOpen) this.#send(DISCONNECT_PACKET);
    this.#fail(new Error("The connection was closed"));
    this.#transport?.close();
  }

  #send(bytes: Uint8Array): void {
    try {
      this.#transport?.send(bytes);
    } catch (error) {
      this.#fail(error instanceof Error ? error : new Error("The connection to the broker failed"));
    }
  }

  #read(bytes: Uint8Array): void {
    try {
      for (const packet of this.#reader.add(bytes)) this.#handle(packet);
    } catch (error) {
      this.#fail(error as Error);
      this.#transport?.close();
    }
  }

  #handle(packet: Packet): void {
    const [, returnCode = 0] = packet.body;
    if (packet.type === PACKET_TYPE.connack) {
      if (returnCode === 0) this.#connected.resolve();
      else this.#connected.reject(new Error(`The broker refused the connection (${returnCode})`));
    } else if (packet.type === PACKET_TYPE.puback) {
      const id = packetIdOf(packet);
      this.#unacknowledged.get(id)?.resolve();
      this.#unacknowledged.delete(id);
    }
  }

  /** Ends the connection and rejects everything that waits for it. Keeps the first reason. */
  #fail(error: Error): void {
    this.#closeReason ??= error;
    this.#connected.reject(error);
    clearInterval(this.#pingTimer);
    for (const { reject } of this.#unacknowledged.values()) reject(error);
    this.#unacknowledged.clear();
  }

  /** Returns an unused packet id from 1 to 65535. */
  #nextPacketId(): number {
    do this.#lastPacketId = (this.#lastPacketId % 0xffff) + 1;
    while (this.#unacknowledged.has(this.#lastPacketId));
    return this.#lastPacketId;
  }
}
