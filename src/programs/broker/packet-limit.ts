import type { Duplex } from "node:stream";

/** The parser of aedes buffers a packet of up to 256 MiB, even from a client that has not logged in. This module sets a lower limit. */

/** Tracks the packet boundaries in a stream of MQTT packets. */
export class PacketMeter {
  /** Bytes of the current packet that have not arrived yet. */
  #left = 0;
  /** The part of the length field read so far: its value, and the factor of the next seven bits. */
  #length = 0;
  #factor = 0;

  /** Returns false if a packet that begins in these bytes exceeds the limit. */
  accepts(bytes: Uint8Array, maxBytes: number): boolean {
    for (let at = 0; at < bytes.length; ) {
      if (this.#left > 0) {
        const skipped = Math.min(this.#left, bytes.length - at);
        this.#left -= skipped;
        at += skipped;
        continue;
      }
      const byte = bytes[at++] ?? 0;
      if (this.#factor === 0) {
        // The first byte of a packet is its type. Up to four bytes of length follow; the highest bit is clear in the last one.
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

/** Closes a connection as soon as a packet announces a length above the limit. */
export function limitPackets<T extends Duplex>(connection: T, maxBytes: number): T {
  const meter = new PacketMeter();
  const read = connection.read.bind(connection);
  connection.read = (size?: number): unknown => {
    const chunk: unknown = read(size);
    if (!(chunk instanceof Uint8Array) || meter.accepts(chunk, maxBytes)) return chunk;
    connection.destroy(new Error(`packet larger than ${maxBytes} bytes`));
    return null;
  };
  return connection;
}
