import { PbfReader, PbfWriter } from "pbf";
import { malformed } from "./protocol-error.ts";

/** Reads and writes protobuf messages. The package `pbf` does not check bounds and types; this reader does. */

const VARINT = 0;
const FIXED64 = 1;
const BYTES = 2;
const FIXED32 = 5;

const MAX_FIELD = 2 ** 29 - 1;
/** Messages inside messages. A deeper one would only cost stack. */
const MAX_DEPTH = 32;
/** Up to here, decoding ASCII by hand is faster than a call of the decoder. */
const SHORT_BYTES = 24;

const encoder = new TextEncoder();
const utf8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

/**
 * Reads one message. `fields` calls a function for every field, which reads the value with the method of its type, or leaves it: then the
 * value is skipped. Every method throws `ProtocolError` if the value is not of that type or goes beyond the end of its message.
 */
export class ProtobufReader {
  readonly #pbf: PbfReader;
  #end: number;
  #type = BYTES;
  #depth = 0;

  constructor(bytes: Uint8Array) {
    this.#pbf = new PbfReader(bytes);
    this.#end = bytes.length;
  }

  fields(onField: (field: number) => void): void {
    const pbf = this.#pbf;
    while (pbf.pos < this.#end) {
      const tag = this.#readVarint(false);
      const field = Math.floor(tag / 8);
      if (field === 0 || field > MAX_FIELD) throw malformed("Invalid protobuf: a field has no valid number");
      const type = tag % 8;
      const start = pbf.pos;
      this.#type = type;
      onField(field);
      if (pbf.pos === start) this.#skip(type);
    }
  }

  /** Reads an embedded message by `fields`. */
  message(onField: (field: number) => void): void {
    const end = this.#readLength();
    const outer = this.#end;
    if (this.#depth >= MAX_DEPTH) throw malformed("Invalid protobuf: messages are nested too deeply");
    this.#depth += 1;
    this.#end = end;
    this.fields(onField);
    this.#end = outer;
    this.#depth -= 1;
  }

  bytes(): Uint8Array {
    const end = this.#readLength();
    const bytes = this.#pbf.buf.subarray(this.#pbf.pos, end);
    this.#pbf.pos = end;
    return bytes;
  }

  string(): string {
    const bytes = this.bytes();
    if (bytes.length <= SHORT_BYTES && bytes.every((byte) => byte < 0x80)) return String.fromCharCode(...bytes);
    try {
      return utf8.decode(bytes);
    } catch {
      throw malformed("Invalid protobuf: a string is not UTF-8");
    }
  }

  /** Reads `uint32`, `uint64`, `bool` or an enumeration. Integers beyond 2^53 are rounded. */
  uint(): number {
    this.#expect(VARINT);
    return this.#readVarint(false);
  }

  /** Reads `int32` or `int64`. Integers beyond 2^53 are rounded. */
  int(): number {
    this.#expect(VARINT);
    return this.#readVarint(true);
  }

  /** Reads `sint32` or `sint64`. */
  sint(): number {
    const encoded = this.uint();
    return encoded % 2 === 1 ? (encoded + 1) / -2 : encoded / 2;
  }

  bool(): boolean {
    return this.uint() !== 0;
  }

  double(): number {
    this.#expect(FIXED64);
    return this.#pbf.dataView.getFloat64(this.#advance(8), true);
  }

  fixed64(): bigint {
    this.#expect(FIXED64);
    return this.#pbf.dataView.getBigUint64(this.#advance(8), true);
  }

  sfixed64(): bigint {
    return BigInt.asIntN(64, this.fixed64());
  }

  fixed32(): number {
    this.#expect(FIXED32);
    return this.#pbf.dataView.getUint32(this.#advance(4), true);
  }

  /** Reads a value of a repeated `double` field, which may be packed. Skips values beyond `max`, as the next two methods do. */
  doubles(into: number[], max: number): void {
    this.#repeated(FIXED64, into, max, () => this.#pbf.dataView.getFloat64(this.#advance(8), true));
  }

  /** Reads a value of a repeated `fixed64` field, which may be packed. Integers beyond 2^53 are rounded. */
  fixed64s(into: number[], max: number): void {
    this.#repeated(FIXED64, into, max, () => Number(this.#pbf.dataView.getBigUint64(this.#advance(8), true)));
  }

  /** Reads a value of a repeated `uint64` field or enumeration, which may be packed. Integers beyond 2^53 are rounded. */
  uints(into: number[], max: number): void {
    this.#repeated(VARINT, into, max, () => this.#readVarint(false));
  }

  #repeated(type: number, into: number[], max: number, read: () => number): void {
    const keep = (): void => {
      const value = read();
      if (into.length < max) into.push(value);
    };
    if (this.#type === type) {
      keep();
      return;
    }
    const end = this.#readLength();
    const outer = this.#end;
    this.#end = end;
    while (this.#pbf.pos < end) keep();
    this.#end = outer;
  }

  #expect(type: number): void {
    if (this.#type !== type) throw malformed("Invalid protobuf: a field has another type");
  }

  /** Reads the length of a value. Returns the position of its end. */
  #readLength(): number {
    this.#expect(BYTES);
    const end = this.#readVarint(false) + this.#pbf.pos;
    if (end > this.#end) throw truncated();
    return end;
  }

  #readVarint(isSigned: boolean): number {
    let value: number;
    try {
      value = this.#pbf.readVarint(isSigned);
    } catch {
      throw this.#pbf.pos > this.#end ? truncated() : malformed("Invalid protobuf: an integer is too long");
    }
    if (this.#pbf.pos > this.#end) throw truncated();
    return value;
  }

  /** Moves behind a value of that size. Returns the position of its beginning. */
  #advance(size: number): number {
    const start = this.#pbf.pos;
    if (start + size > this.#end) throw truncated();
    this.#pbf.pos = start + size;
    return start;
  }

  #skip(type: number): void {
    this.#type = type;
    if (type === VARINT) this.#readVarint(false);
    else if (type === BYTES) this.#pbf.pos = this.#readLength();
    else if (type === FIXED64) this.#advance(8);
    else if (type === FIXED32) this.#advance(4);
    else throw malformed("Invalid protobuf: a field has an unknown type");
  }
}

const truncated = () => malformed("Invalid protobuf: the message is truncated");

export class ProtobufWriter extends PbfWriter {
  /** The package writes wrong bytes for characters from U+20000 on. */
  override writeString(text: string): void {
    this.writeBytes(encoder.encode(text));
  }
}
