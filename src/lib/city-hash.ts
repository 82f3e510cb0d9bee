/**
 * CityHash64 1.0.2 of a short text, as ClickHouse's function `cityHash64` computes it. The distributed tables of a ClickHouse cluster find the
 * shard of an agent with it.
 */

const MASK = (1n << 64n) - 1n;
const K0 = 0xc3a5c85c97cb3127n;
const K1 = 0xb492b66fbe98f273n;
const K2 = 0x9ae16a3b2f90404fn;
const K3 = 0xc949d7c7509e6557n;
const MULTIPLIER = 0x9ddfea08eb382d69n;

const wrap = (value: bigint): bigint => value & MASK;
const rotate = (value: bigint, by: bigint): bigint => wrap((value >> by) | (value << (64n - by)));
const mix = (value: bigint): bigint => value ^ (value >> 47n);

/** Combines two numbers. */
function combine(low: bigint, high: bigint): bigint {
  const first = mix(wrap((low ^ high) * MULTIPLIER));
  return wrap(mix(wrap((high ^ first) * MULTIPLIER)) * MULTIPLIER);
}

/** @param text at most 64 ASCII characters, as the name of an agent */
export function cityHash64(text: string): bigint {
  const { length } = text;
  const bytes = new DataView(new TextEncoder().encode(text).buffer);
  const size = BigInt(length);
  const word = (offset: number): bigint => bytes.getBigUint64(offset, true);
  if (length > 32) return hashLong(word, length);
  if (length > 16) {
    const [a, b] = [wrap(word(0) * K1), word(8)];
    const [c, d] = [wrap(word(length - 8) * K2), wrap(word(length - 16) * K0)];
    return combine(wrap(rotate(wrap(a - b), 43n) + rotate(c, 30n) + d), wrap(a + rotate(b ^ K3, 20n) - c + size));
  }
  if (length > 8) {
    const last = word(length - 8);
    return combine(word(0), rotate(wrap(last + size), size)) ^ last;
  }
  if (length >= 4) {
    const [first, last] = [bytes.getUint32(0, true), bytes.getUint32(length - 4, true)];
    return combine(wrap(size + (BigInt(first) << 3n)), BigInt(last));
  }
  if (length === 0) return K2;
  const [first, middle, last] = [bytes.getUint8(0), bytes.getUint8(length >> 1), bytes.getUint8(length - 1)];
  const [y, z] = [BigInt(first + (middle << 8)), BigInt(length + (last << 2))];
  return wrap(mix(wrap(y * K2) ^ wrap(z * K3)) * K2);
}

/** The hash of 33 to 64 characters. */
function hashLong(word: (offset: number) => bigint, length: number): bigint {
  const half = (start: bigint, [second, third, last]: [bigint, bigint, bigint]): [bigint, bigint] => {
    const early = wrap(start + second);
    const late = wrap(early + third);
    const sum = rotate(wrap(start + last), 52n) + rotate(late, 31n) + rotate(start, 37n) + rotate(early, 7n);
    return [wrap(late + last), wrap(sum)];
  };
  const [v1, v2] = half(wrap(word(0) + (word(length - 16) + BigInt(length)) * K0), [word(8), word(16), word(24)]);
  const [w1, w2] = half(wrap(word(16) + word(length - 32)), [word(length - 24), word(length - 16), word(length - 8)]);
  const mixed = mix(wrap((v1 + w2) * K2 + (w1 + v2) * K0));
  return wrap(mix(wrap(mixed * K0 + v2)) * K2);
}
