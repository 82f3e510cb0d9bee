import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { compressSnappy, decompressSnappy } from "../../../src/protocols/snappy.ts";

const MAX_BYTES = 1_000_000;
const decompress = (...block: number[]) => decompressSnappy(Uint8Array.from(block), MAX_BYTES);

/** Bytes with and without repetitions. */
const content = fc.oneof(
  fc.uint8Array({ maxLength: 500 }),
  fc
    .array(fc.constantFrom("up", "node_cpu_seconds_total", '{mode="idle"}', "é"), { maxLength: 200 })
    .map((words) => new TextEncoder().encode(words.join(" "))),
  fc
    .tuple(fc.integer({ min: 0, max: 200_000 }), fc.nat(255))
    .map(([length, byte]) => new Uint8Array(length).fill(byte)),
);

describe("a snappy block", () => {
  it("has the content from which it was compressed", () => {
    fc.assert(
      fc.property(content, (bytes) => {
        // Comparing large arrays element by element is slow.
        expect(Buffer.compare(decompressSnappy(compressSnappy(bytes), MAX_BYTES), bytes)).toBe(0);
      }),
    );
  });

  it("is smaller than a content with repetitions, and at most a little larger than one without", () => {
    expect(compressSnappy(new Uint8Array(65_536)).length).toBeLessThan(4_000);
    fc.assert(
      fc.property(content, (bytes) => {
        expect(compressSnappy(bytes).length).toBeLessThanOrEqual(32 + bytes.length + bytes.length / 6);
      }),
    );
  });

  it("may have literals of all lengths and copies of all forms", () => {
    expect(decompress(3, 0x08, 1, 2, 3)).toEqual(Uint8Array.of(1, 2, 3));
    // Lengths of literals in 1, 2, 3 and 4 bytes.
    expect(decompress(2, 0xf0, 1, 7, 8)).toEqual(Uint8Array.of(7, 8));
    expect(decompress(2, 0xf4, 1, 0, 7, 8)).toEqual(Uint8Array.of(7, 8));
    expect(decompress(2, 0xf8, 1, 0, 0, 7, 8)).toEqual(Uint8Array.of(7, 8));
    expect(decompress(2, 0xfc, 1, 0, 0, 0, 7, 8)).toEqual(Uint8Array.of(7, 8));
    // Copies with an offset in 1, 2 and 4 bytes. The first overlaps its source.
    expect(decompress(6, 0x04, 1, 2, 0x01, 2)).toEqual(Uint8Array.of(1, 2, 1, 2, 1, 2));
    expect(decompress(4, 0x04, 1, 2, 0x06, 2, 0)).toEqual(Uint8Array.of(1, 2, 1, 2));
    expect(decompress(4, 0x04, 1, 2, 0x07, 2, 0, 0, 0)).toEqual(Uint8Array.of(1, 2, 1, 2));
  });

  it("may be empty", () => {
    expect(decompress(0)).toEqual(new Uint8Array());
    expect(compressSnappy(new Uint8Array())).toEqual(Uint8Array.of(0));
  });

  it("is too large if it declares a content beyond the limit", () => {
    expect(() => decompressSnappy(Uint8Array.of(0xff, 0xff, 0xff, 0xff, 0x0f), MAX_BYTES)).toThrow(
      expect.objectContaining({ code: "too_large" }),
    );
    expect(() => decompressSnappy(compressSnappy(new Uint8Array(1_001)), 1_000)).toThrow(
      expect.objectContaining({ code: "too_large" }),
    );
    expect(decompressSnappy(compressSnappy(new Uint8Array(1_000)), 1_000)).toHaveLength(1_000);
  });

  it("is malformed if it declares more than its bytes can hold", () => {
    expect(() => decompress(0xa0, 0x8d, 0x06, 0x00, 1)).toThrow("Invalid snappy block");
  });

  it("is malformed if a length or an offset is wrong", () => {
    for (const block of [
      [],
      [0x80],
      [0x80, 0x80, 0x80, 0x80, 0x80, 0x01],
      [1],
      [4, 0x08, 1, 2, 3],
      [2, 0x08, 1, 2, 3],
      [9, 0x20, 1, 2, 3],
      [9, 0xf4, 1],
      [6, 0x04, 1, 2, 0x01, 0],
      [6, 0x04, 1, 2, 0x01, 3],
      [5, 0x04, 1, 2, 0x01, 2],
      [6, 0x04, 1, 2, 0x01],
      [6, 0x04, 1, 2, 0x0f, 0xff, 0xff, 0xff, 0xff],
    ]) {
      expect(() => decompress(...block)).toThrow(expect.objectContaining({ code: "malformed" }));
    }
  });

  it("is malformed at every truncation", () => {
    const block = compressSnappy(new TextEncoder().encode("wifi.clients wifi.clients lifi.clients ".repeat(10)));
    for (let length = 0; length < block.length; length += 1) {
      expect(() => decompressSnappy(block.subarray(0, length), MAX_BYTES)).toThrow("Invalid snappy block");
    }
  });

  it("never causes another error than malformed or too large", () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 200 }), (block) => {
        try {
          expect(decompressSnappy(block, MAX_BYTES).length).toBeLessThanOrEqual(MAX_BYTES);
        } catch (error) {
          expect(error).toMatchObject({ code: expect.stringMatching(/^(malformed|too_large)$/) });
        }
      }),
      { numRuns: 2_000 },
    );
  });
});
