import type { Duplex } from "node:stream";

/** The parser of aedes collects a packet of whatever length it is told, up to 256 MiB, also before anyone has logged in. */

/** How far a stream of MQTT packets has come. */
export class PacketMeter {
  /** Bytes of the packet that are still to come. */
  #left = 0;
  /** Of a length that is not complete yet: its value so far, and what the next seven bits of it count. */
  #length = 0;
  #factor = 0;

  /** Whether all packets that begin in the next bytes of the stream are of a good length. */
  accepts(bytes: Uint8Array, maxBytes: number): boolean {
    for (let at = 0; at < bytes.length; ) {
      if (this.#left > 0) {
        const taken = Math.min(this.#left, bytes.length - at);
        this.#left -= taken;
        at += taken;
        continue;
      }
      const byte = bytes[at++] ?? 0;
      if (this.#factor === 0) {
        // The first byte of a packet tells its kind; up to four bytes of length follow, the last of them without the highest bit.
        this.#length = 0;
        this.#factor = 1;
        continue;
      }
      this.#length += (byte & 0x7f) * this.#factor;
      this.#factor *= 0x80;
      if (this.#length > maxBytes || this.#factor > 0x80 ** 4) return false;
      if (byte < 0x80) {
        this.#left = this.#length;
        this.#factor = 0;
      }
    }
    return true;
  }
}

/** Ends a connection as soon as a packet announces more than it may hold. */
export function limitPackets<T extends Duplex>(connection: T, maxBytes: number): T {
  const meter = new PacketMeter();
  const read = connection.read.bind(connection);
  connection.read = (size?: number): unknown => {
    const chunk: unknown = read(size);
    if (!(chunk instanceof Uint8Array) || meter.accepts(chunk, maxBytes)) return chunk;
    connection.destroy(new Error(`A packet of more than ${maxBytes} bytes`));
    return null;
  };
  return connection;
}
