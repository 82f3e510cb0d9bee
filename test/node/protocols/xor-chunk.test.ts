import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { crc32c } from "../../../src/protocols/prometheus/crc32c.ts";
import { type ChunkSample, encodeXorChunk, MAX_CHUNK_SAMPLES } from "../../../src/protocols/prometheus/xor-chunk.ts";
import { decodeXorChunk } from "../../support/protocols/xor-decoder.ts";

const hex = (bytes: Uint8Array): string => Buffer.from(bytes).toString("hex");

/** Series with regular and irregular distances, and values that repeat, change a little, or change completely. */
const anySeries = fc
  .tuple(
    fc.integer({ min: -1_000_000, max: 4_102_444_800_000 }),
    fc.array(
      fc.tuple(
        fc.oneof(
          fc.constantFrom(1_000, 10_000, 15_000),
          fc.integer({ min: 1, max: 70_000 }),
          fc.integer({ min: 1, max: 2 ** 43 }),
        ),
        fc.oneof(
          fc.constantFrom(0, -0, 1, 1.5, 100, Number.MAX_VALUE, Number.MIN_VALUE, Number.POSITIVE_INFINITY, Number.NaN),
          fc.integer(),
          fc.double(),
        ),
      ),
      { minLength: 1, maxLength: MAX_CHUNK_SAMPLES },
    ),
  )
  .map(([startMs, steps]): ChunkSample[] => {
    let tsMs = startMs;
    return steps.map(([stepMs, value]) => {
      tsMs += stepMs;
      return { tsMs, value };
    });
  });

describe("an XOR chunk", () => {
  it("decodes to the same samples, for any series", () => {
    fc.assert(
      fc.property(anySeries, (samples) => {
        expect(decodeXorChunk(encodeXorChunk(samples))).toEqual(samples);
      }),
      { numRuns: 500 },
    );
  });

  it("has the bytes that Prometheus writes for one sample, with the empty byte at the end", () => {
    expect(hex(encodeXorChunk([{ tsMs: 1, value: 1 }]))).toBe("0001" + "02" + "3ff0000000000000" + "00");
  });

  it("has the bytes that the format defines for equal distances and values", () => {
    const samples = [1_000, 2_000, 3_000].map((tsMs) => ({ tsMs, value: 2 }));
    // Varint 2000, the value, varint 1000, no change of the value; then no change of the distance, no change of the value.
    expect(hex(encodeXorChunk(samples))).toBe("0003" + "d00f" + "4000000000000000" + "e807" + "00");
  });

  it("has the bytes that the format defines for a change of the value and of the distance", () => {
    const samples = [
      { tsMs: 1_000, value: 2 },
      { tsMs: 2_000, value: 3 },
      { tsMs: 3_001, value: 2 },
    ];
    // 2 xor 3 is 0x0008000000000000: 12 leading zeros, 1 significant bit. Bits: 11 01100 000001 1, then 10 and 1 in 14 bits, then 10 1.
    const bits = "11011000000011" + "1000000000000001" + "101";
    const bytes = (bits.padEnd(40, "0").match(/.{8}/g) ?? []).map((byte) => Number.parseInt(byte, 2));
    const values = hex(Uint8Array.from(bytes));
    expect(hex(encodeXorChunk(samples))).toBe(`0003${"d00f"}4000000000000000e807${values}`);
  });

  it("rejects an empty series and more samples than a chunk may have", () => {
    expect(() => encodeXorChunk([])).toThrow(RangeError);
    const many = Array.from({ length: MAX_CHUNK_SAMPLES + 1 }, (_, tsMs) => ({ tsMs, value: 0 }));
    expect(() => encodeXorChunk(many)).toThrow(RangeError);
  });
});

describe("CRC-32C", () => {
  it.each([
    ["", 0],
    ["a", 0xc1d04330],
    ["123456789", 0xe3069283],
    ["The quick brown fox jumps over the lazy dog", 0x22620404],
  ])("of %j is the published value", (text, sum) => {
    expect(crc32c(new TextEncoder().encode(text))).toBe(sum);
  });

  it("of 32 zero bytes is the value of RFC 3720", () => {
    expect(crc32c(new Uint8Array(32))).toBe(0x8a9136aa);
  });
});
