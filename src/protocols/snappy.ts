import { malformed, ProtocolError } from "./protocol-error.ts";

/** Snappy's block format: the length of the content as a varint, then literals and copies of earlier bytes. */

const LITERAL = 0;
const COPY_1 = 1;
const COPY_2 = 2;

/** Lengths of literals from here on follow the tag in 1 to 4 bytes. */
const LONG_LITERAL = 60;

/**
 * Decompresses a block. Throws `ProtocolError` if it is invalid, or if its content is longer than `maxBytes`: the declared length is checked
 * before any memory is allocated.
 */
export function decompressSnappy(block: Uint8Array, maxBytes: number): Uint8Array<ArrayBuffer> {
  const [length, start] = readLength(block);
  if (length > maxBytes) throw new ProtocolError("too_large", "Decompressed request body too large");
  // A copy of 3 bytes yields at most 64. A block that declares more is invalid, and need not cost the memory.
  if (length > block.length * 64) throw invalid();
  const output = new Uint8Array(length);
  let [from, to] = [start, 0];
  while (from < block.length) {
    const tag = block[from] ?? 0;
    from += 1;
    const type = tag & 3;
    const high = tag >> 2;
    if (type === LITERAL) {
      const size = high < LONG_LITERAL ? 0 : high - LONG_LITERAL + 1;
      const literal = (size === 0 ? high : readLittleEndian(block, from, size)) + 1;
      from += size;
      if (from + literal > block.length || to + literal > length) throw invalid();
      output.set(block.subarray(from, from + literal), to);
      from += literal;
      to += literal;
      continue;
    }
    const size = type === COPY_1 ? 1 : type === COPY_2 ? 2 : 4;
    const low = readLittleEndian(block, from, size);
    from += size;
    const offset = type === COPY_1 ? ((tag >> 5) << 8) | low : low;
    const copied = type === COPY_1 ? ((tag >> 2) & 7) + 4 : high + 1;
    if (offset === 0 || offset > to || to + copied > length) throw invalid();
    copy(output, to, offset, copied);
    to += copied;
  }
  if (to !== length) throw invalid();
  return output;
}

/** Copies bytes that end at `to`. The copy may overlap its source: then it repeats. */
function copy(output: Uint8Array, to: number, offset: number, size: number): void {
  if (offset >= size) output.copyWithin(to, to - offset, to - offset + size);
  else for (let i = 0; i < size; i += 1) output[to + i] = output[to + i - offset] ?? 0;
}

function readLittleEndian(bytes: Uint8Array, at: number, size: number): number {
  if (at + size > bytes.length) throw invalid();
  let value = 0;
  for (let i = size - 1; i >= 0; i -= 1) value = value * 256 + (bytes[at + i] ?? 0);
  return value;
}

/** Returns the declared length and the position after it. */
function readLength(block: Uint8Array): [length: number, next: number] {
  let length = 0;
  for (let i = 0; i < Math.min(block.length, 5); i += 1) {
    const byte = block[i] ?? 0;
    length += (byte & 0x7f) * 2 ** (7 * i);
    if (byte < 0x80) return [length, i + 1];
  }
  throw invalid();
}

const invalid = () => malformed("Invalid snappy block");

/** Copies refer to bytes of the same part, so that two bytes hold their offset. */
const PART_BYTES = 65_536;
const HASH_BITS = 14;
const MIN_COPY = 4;
const MAX_COPY = 64;

/** Compresses bytes to a block. */
export function compressSnappy(bytes: Uint8Array): Uint8Array<ArrayBuffer> {
  // The worst case: the length, and for each part a literal, whose tag has up to 3 bytes.
  const output = new Output(
    new Uint8Array(5 + bytes.length + 3 * Math.ceil(bytes.length / PART_BYTES) + bytes.length / 6),
  );
  output.length(bytes.length);
  const table = new Uint16Array(1 << HASH_BITS);
  for (let start = 0; start < bytes.length; start += PART_BYTES) {
    compressPart(bytes.subarray(start, start + PART_BYTES), table.fill(0), output);
  }
  return output.finish();
}

function compressPart(part: Uint8Array, table: Uint16Array, output: Output): void {
  const view = new DataView(part.buffer, part.byteOffset, part.byteLength);
  const last = part.length - MIN_COPY;
  let [at, unwritten, misses] = [1, 0, 0];
  while (at <= last) {
    const four = view.getUint32(at, true);
    const slot = Math.imul(four, 0x1e35a7bd) >>> (32 - HASH_BITS);
    const candidate = table[slot] ?? 0;
    table[slot] = at;
    if (view.getUint32(candidate, true) !== four || candidate >= at) {
      // Bytes that do not repeat are passed ever faster.
      misses += 1;
      at += 1 + (misses >> 5);
      continue;
    }
    let end = at + MIN_COPY;
    while (end < part.length && part[end] === part[end - at + candidate]) end += 1;
    output.literal(part.subarray(unwritten, at));
    output.copy(at - candidate, end - at);
    [at, unwritten, misses] = [end, end, 0];
  }
  output.literal(part.subarray(unwritten));
}

class Output {
  readonly #bytes: Uint8Array<ArrayBuffer>;
  #at = 0;

  constructor(bytes: Uint8Array<ArrayBuffer>) {
    this.#bytes = bytes;
  }

  length(length: number): void {
    let rest = length;
    for (; rest >= 0x80; rest = Math.floor(rest / 0x80)) this.#push((rest & 0x7f) | 0x80);
    this.#push(rest);
  }

  literal(bytes: Uint8Array): void {
    const size = bytes.length - 1;
    if (size < 0) return;
    if (size < LONG_LITERAL) this.#push(size << 2);
    else if (size < 0x100) this.#push(LONG_LITERAL << 2, size);
    else this.#push((LONG_LITERAL + 1) << 2, size & 0xff, size >> 8);
    this.#bytes.set(bytes, this.#at);
    this.#at += bytes.length;
  }

  copy(offset: number, length: number): void {
    for (let rest = length; rest > 0; rest -= MAX_COPY) {
      const size = Math.min(rest, MAX_COPY);
      this.#push(((size - 1) << 2) | COPY_2, offset & 0xff, offset >> 8);
    }
  }

  finish(): Uint8Array<ArrayBuffer> {
    return this.#bytes.slice(0, this.#at);
  }

  #push(...bytes: number[]): void {
    for (const byte of bytes) {
      this.#bytes[this.#at] = byte;
      this.#at += 1;
    }
  }
}
