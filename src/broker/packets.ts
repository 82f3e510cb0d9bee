/** The packets of MQTT 3.1.1 that are needed to publish with QoS 1. */

const encoder = new TextEncoder();

/** The type is in the upper half of a packet's first byte. */
export const PACKET_TYPE = { connack: 2, puback: 4, pingresp: 13 } as const;

export interface Packet {
  type: number;
  body: Uint8Array;
}

export interface ConnectOptions {
  clientId: string;
  keepAliveS: number;
  username?: string;
  password?: string;
}

const CLEAN_SESSION = 0b10;
const WITH_LOGIN = 0b1100_0000;

export function connectPacket({ clientId, keepAliveS, username, password }: ConnectOptions): Uint8Array {
  const isAnonymous = username === undefined || password === undefined;
  const flags = CLEAN_SESSION | (isAnonymous ? 0 : WITH_LOGIN);
  const login = isAnonymous ? [] : [text(username), text(password)];
  return packet(0x10, [text("MQTT"), [4, flags], uint16(keepAliveS), text(clientId), ...login]);
}

export const publishPacket = (id: number, topic: string, payload: string): Uint8Array =>
  packet(0x32, [text(topic), uint16(id), encoder.encode(payload)]);

export const PING_PACKET = new Uint8Array([0xc0, 0]);
export const DISCONNECT_PACKET = new Uint8Array([0xe0, 0]);

/** Returns the packet id that a PUBACK acknowledges. */
export const packetIdOf = ({ body }: Packet): number => ((body[0] ?? 0) << 8) | (body[1] ?? 0);

/** Limit of a packet's body. A broker sends only short packets to a client that does not subscribe. */
const MAX_BODY_BYTES = 1_024;

/** Splits a stream of bytes, in chunks of any size, into packets. */
export class PacketReader {
  #bytes = new Uint8Array(0);

  /** Adds bytes and returns the packets that they complete. */
  add(bytes: Uint8Array): Packet[] {
    const all = new Uint8Array(this.#bytes.length + bytes.length);
    all.set(this.#bytes);
    all.set(bytes, this.#bytes.length);
    const packets: Packet[] = [];
    let at = 0;
    for (let next = readPacket(all, at); next !== undefined; next = readPacket(all, at)) {
      packets.push(next.packet);
      at = next.end;
    }
    this.#bytes = all.slice(at);
    return packets;
  }
}

function readPacket(bytes: Uint8Array, at: number): { packet: Packet; end: number } | undefined {
  let length = 0;
  for (let i = 1; i <= 4; i++) {
    const byte = bytes[at + i];
    if (byte === undefined) return undefined;
    length |= (byte & 0x7f) << (7 * (i - 1));
    if (byte & 0x80) continue;
    if (length > MAX_BODY_BYTES) break;
    const start = at + i + 1;
    if (bytes.length < start + length) return undefined;
    return { packet: { type: (bytes[at] ?? 0) >> 4, body: bytes.slice(start, start + length) }, end: start + length };
  }
  throw new Error("The broker's response is not MQTT");
}

function packet(firstByte: number, fields: readonly ArrayLike<number>[]): Uint8Array {
  const length = fields.reduce((sum, field) => sum + field.length, 0);
  const head = [firstByte, ...encodeLength(length)];
  const bytes = new Uint8Array(head.length + length);
  bytes.set(head);
  let at = head.length;
  for (const field of fields) {
    bytes.set(field, at);
    at += field.length;
  }
  return bytes;
}

/** Encodes a length with seven bits in each byte, lowest bits first. */
function encodeLength(length: number): number[] {
  const bytes: number[] = [];
  let left = length;
  do {
    const bits = left & 0x7f;
    left >>>= 7;
    bytes.push(left > 0 ? bits | 0x80 : bits);
  } while (left > 0);
  return bytes;
}

const uint16 = (value: number): number[] => [value >> 8, value & 0xff];

function text(value: string): Uint8Array {
  const bytes = encoder.encode(value);
  return new Uint8Array([...uint16(bytes.length), ...bytes]);
}
