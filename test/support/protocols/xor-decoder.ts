import type { ChunkSample } from "../../../src/protocols/prometheus/xor-chunk.ts";

/** Decodes a chunk of Prometheus, bit by bit and with 64-bit integers: slow, and independent of the encoder. */
export function decodeXorChunk(bytes: Uint8Array): ChunkSample[] {
  let position = 16;
  const bit = (): bigint => {
    const byte = bytes[position >> 3];
    if (byte === undefined) throw new Error("the chunk ends too early");
    return BigInt((byte >> (7 - (position++ & 7))) & 1);
  };
  const bits = (count: number): bigint => {
    let number = 0n;
    for (let i = 0; i < count; i++) number = (number << 1n) | bit();
    return number;
  };
  const varint = (): bigint => {
    let number = 0n;
    for (let shift = 0n; ; shift += 7n) {
      const byte = bits(8);
      number |= (byte & 0x7fn) << shift;
      if (byte < 0x80n) return number;
    }
  };
  const difference = (): bigint => {
    let ones = 0;
    while (ones < 4 && bit() === 1n) ones++;
    if (ones === 0) return 0n;
    if (ones === 4) return BigInt.asIntN(64, bits(64));
    const size = [0, 14, 17, 20][ones] ?? 0;
    const number = bits(size);
    return number > 1n << BigInt(size - 1) ? number - (1n << BigInt(size)) : number;
  };
  const view = new DataView(new ArrayBuffer(8));
  const toValue = (number: bigint): number => {
    view.setBigUint64(0, number);
    return view.getFloat64(0);
  };

  const samples: ChunkSample[] = [];
  const count = ((bytes[0] ?? 0) << 8) | (bytes[1] ?? 0);
  let [time, delta, value, leading, length] = [0n, 0n, 0n, 0, 0];
  for (let i = 0; i < count; i++) {
    if (i === 0) {
      const doubled = varint();
      time = doubled & 1n ? -(doubled >> 1n) - 1n : doubled >> 1n;
      value = bits(64);
    } else {
      delta = i === 1 ? varint() : delta + difference();
      time += delta;
      if (bit() === 1n) {
        if (bit() === 1n) {
          leading = Number(bits(5));
          length = Number(bits(6)) || 64;
        }
        value ^= bits(length) << BigInt(64 - leading - length);
      }
    }
    samples.push({ tsMs: Number(time), value: toValue(value) });
  }
  return samples;
}
