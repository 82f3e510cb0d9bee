/**
 * Encodes samples as Prometheus stores them in its chunks: times as differences of differences, and values as XOR of consecutive
 * values. The bytes are the same as those of Prometheus (tsdb/chunkenc).
 */

export interface ChunkSample {
  tsMs: number;
  value: number;
}

/** As in Prometheus: longer chunks save little, and readers decode whole chunks. */
export const MAX_CHUNK_SAMPLES = 120;

/** The header has 2 bytes; a sample takes at most 68 bits for its time and 77 bits for its value, and the second time up to 8 bytes. */
const MAX_CHUNK_BYTES = 32 + MAX_CHUNK_SAMPLES * 20;

/** Returns the chunk of up to `MAX_CHUNK_SAMPLES` samples, whose times are whole numbers in ascending order. */
export function encodeXorChunk(samples: readonly ChunkSample[]): Uint8Array<ArrayBuffer> {
  if (samples.length === 0 || samples.length > MAX_CHUNK_SAMPLES) throw new RangeError("a chunk has 1 to 120 samples");
  const bits = new BitWriter(MAX_CHUNK_BYTES);
  bits.write(samples.length, 16);
  const values = new ValueEncoder(bits);
  let [lastMs, lastDelta] = [0, 0];
  for (const [i, { tsMs, value }] of samples.entries()) {
    const delta = tsMs - lastMs;
    if (i === 0) {
      // A signed varint doubles the number: the sign is its last bit.
      bits.writeVarint(tsMs < 0 ? -2 * tsMs - 1 : 2 * tsMs);
      values.first(value);
    } else {
      if (i === 1) bits.writeVarint(delta);
      else writeDifference(bits, delta - lastDelta);
      values.next(value);
    }
    [lastMs, lastDelta] = [tsMs, i === 0 ? 0 : delta];
  }
  return bits.finish();
}

/** Writes how much the distance of two samples differs from the distance before it. */
function writeDifference(bits: BitWriter, difference: number): void {
  if (difference === 0) bits.write(0, 1);
  else if (fits(difference, 14)) bits.write(0b10, 2).write(difference, 14);
  else if (fits(difference, 17)) bits.write(0b110, 3).write(difference, 17);
  else if (fits(difference, 20)) bits.write(0b1110, 4).write(difference, 20);
  else bits.write(0b1111, 4).writePair(Math.floor(difference / 2 ** 32), 32, difference, 32);
}

/** Prometheus reads the largest power of two as positive, unlike two's complement. */
const fits = (number: number, bits: number): boolean => number > -(2 ** (bits - 1)) && number <= 2 ** (bits - 1);

/** Encodes values as the significant bits of their XOR with the value before. A value is in two halves of 32 bits. */
class ValueEncoder {
  readonly #bits: BitWriter;
  readonly #view = new DataView(new ArrayBuffer(8));
  #high = 0;
  #low = 0;
  /** The window of significant bits, by the zeros around it. Undefined before the first change. */
  #window: { leading: number; trailing: number } | undefined;

  constructor(bits: BitWriter) {
    this.#bits = bits;
  }

  first(value: number): void {
    this.#view.setFloat64(0, value);
    this.#high = this.#view.getUint32(0);
    this.#low = this.#view.getUint32(4);
    this.#bits.writePair(this.#high, 32, this.#low, 32);
  }

  next(value: number): void {
    this.#view.setFloat64(0, value);
    const [high, low] = [this.#view.getUint32(0), this.#view.getUint32(4)];
    const [xorHigh, xorLow] = [(high ^ this.#high) >>> 0, (low ^ this.#low) >>> 0];
    [this.#high, this.#low] = [high, low];
    if (xorHigh === 0 && xorLow === 0) {
      this.#bits.write(0, 1);
      return;
    }
    // The format has 5 bits for the number of leading zeros.
    const leading = Math.min(31, Math.clz32(xorHigh));
    const trailing = xorLow === 0 ? 32 + trailingZeros(xorHigh) : trailingZeros(xorLow);
    const window = this.#window;
    if (window !== undefined && leading >= window.leading && trailing >= window.trailing) {
      this.#bits.write(0b10, 2);
      this.#writeWindow(xorHigh, xorLow, window);
      return;
    }
    const length = 64 - leading - trailing;
    // 64 does not fit into 6 bits and is written as 0.
    this.#bits
      .write(0b11, 2)
      .write(leading, 5)
      .write(length % 64, 6);
    this.#window = { leading, trailing };
    this.#writeWindow(xorHigh, xorLow, this.#window);
  }

  #writeWindow(high: number, low: number, { leading, trailing }: { leading: number; trailing: number }): void {
    if (trailing >= 32) {
      this.#bits.write(high >>> (trailing - 32), 64 - leading - trailing);
      return;
    }
    // The window begins in the upper half, as it has at most 31 leading zeros, and ends in the lower half.
    this.#bits.writePair(high, 32 - leading, low >>> trailing, 32 - trailing);
  }
}

const trailingZeros = (half: number): number => 31 - Math.clz32(half & -half);

/** Writes bits from the highest to the lowest. */
class BitWriter {
  readonly #bytes: Uint8Array<ArrayBuffer>;
  /** Bits that are written. */
  #length = 0;
  #endsWithByte = false;

  constructor(maxBytes: number) {
    this.#bytes = new Uint8Array(maxBytes);
  }

  /** Writes the lowest bits of a number, at most 32. Of a negative number it writes two's complement. */
  write(number: number, count: number): this {
    const value = number >>> 0;
    for (let left = count; left > 0; ) {
      const free = 8 - (this.#length & 7);
      const taken = Math.min(free, left);
      const bits = (value >>> (left - taken)) & (2 ** taken - 1);
      const index = this.#length >>> 3;
      this.#bytes[index] = (this.#bytes[index] ?? 0) | (bits << (free - taken));
      this.#length += taken;
      left -= taken;
    }
    this.#endsWithByte = count % 8 === 0;
    return this;
  }

  /** Writes the lowest bits of two numbers as one number of up to 64 bits. */
  writePair(high: number, highCount: number, low: number, lowCount: number): void {
    this.write(high, highCount).write(low, lowCount);
    this.#endsWithByte = (highCount + lowCount) % 8 === 0;
  }

  /** Writes a whole number that is not negative in groups of 7 bits, the lowest first. */
  writeVarint(number: number): void {
    let rest = number;
    for (; rest >= 128; rest = Math.floor(rest / 128)) this.write((rest % 128) + 128, 8);
    this.write(rest, 8);
  }

  /** Prometheus begins a new byte after it has written a whole one, and that byte may stay empty. */
  finish(): Uint8Array<ArrayBuffer> {
    const isPadded = this.#endsWithByte && this.#length % 8 === 0;
    return this.#bytes.slice(0, Math.ceil(this.#length / 8) + (isPadded ? 1 : 0));
  }
}
