import { gzipSync } from "node:zlib";
import * as fc from "fast-check";
import { compressSnappy } from "../../../src/protocols/snappy.ts";
import type { Operation } from "./document.ts";
import { hostileText } from "./hostile.ts";

/** Bodies in the formats of collectors: protobuf and lines, compressed, damaged, or far larger than they claim to be. */

export interface BinaryBody {
  headers: Record<string, string>;
  body: Buffer;
}

const MIB = 1024 * 1024;

function varint(value: bigint): Buffer {
  const bytes: number[] = [];
  for (let rest = BigInt.asUintN(64, value); ; rest >>= 7n) {
    if (rest < 128n) return Buffer.from([...bytes, Number(rest)]);
    bytes.push(Number(rest & 127n) | 128);
  }
}

const tag = (field: number, wireType: number): Buffer => varint(BigInt(field * 8 + wireType));
const delimited = (field: number, bytes: Uint8Array, claimed = BigInt(bytes.length)): Buffer =>
  Buffer.concat([tag(field, 2), varint(claimed), bytes]);

function double(value: number): Buffer {
  const bytes = Buffer.alloc(8);
  bytes.writeDoubleLE(value);
  return bytes;
}

const FIELD = fc.integer({ min: 1, max: 14 });
const NOW_NS = BigInt(Date.UTC(2026, 10, 16)) * 1_000_000n;
const number = fc.oneof(
  fc.bigInt({ min: 0n, max: 2n ** 64n - 1n }),
  fc.constantFrom(0n, 1n, NOW_NS, NOW_NS / 1_000_000n),
);
const ABSURD_LENGTHS = [2n ** 31n, 2n ** 32n - 1n, 2n ** 63n, 2n ** 64n - 1n];
const BROKEN = ["00", "0b", "0c", "0e", "0f", "ffffffffffffffffffffff01", "0a", "0aff", "09010203"].map((bytes) =>
  Buffer.from(bytes, "hex"),
);

/** Messages with fields that may mean something to any decoder, nested, and now and then broken. */
const { message } = fc.letrec<{ message: Buffer; field: Buffer }>((tie) => ({
  message: fc.array(tie("field"), { maxLength: 6 }).map((fields) => Buffer.concat(fields)),
  field: fc.oneof(
    { maxDepth: 7, depthIdentifier: "protobuf" },
    fc.tuple(FIELD, number).map(([field, value]) => Buffer.concat([tag(field, 0), varint(value)])),
    fc.tuple(FIELD, fc.double()).map(([field, value]) => Buffer.concat([tag(field, 1), double(value)])),
    fc
      .tuple(FIELD, fc.constantFrom("__name__", "instance", "host.name", "up"))
      .map(([field, text]) => delimited(field, Buffer.from(text))),
    fc.tuple(FIELD, hostileText).map(([field, text]) => delimited(field, Buffer.from(text.slice(0, 10_000)))),
    { weight: 6, arbitrary: fc.tuple(FIELD, tie("message")).map(([field, inner]) => delimited(field, inner)) },
    fc
      .tuple(FIELD, fc.constantFrom(...ABSURD_LENGTHS))
      .map(([field, length]) => delimited(field, Buffer.alloc(3), length)),
    fc.constantFrom(...BROKEN),
  ),
}));

const line = fc.oneof(
  fc
    .tuple(fc.constantFrom("cpu", "n"), fc.double(), fc.integer())
    .map(([name, value, ts]) => `${name},host=a v=${value} ${ts}`),
  hostileText.map((text) => text.slice(0, 2_000)),
  fc.constantFrom(
    "m f=1",
    "m f=1i",
    'm f="a\\"b"',
    "m,a= f=1",
    "m f=",
    ",",
    "m f=1 99999999999999999999",
    "#",
    "m\\ f=1",
  ),
);
const lines = fc.array(line, { maxLength: 20 }).map((all) => Buffer.from(all.join("\n")));

/** A block that claims and has much more than a service may accept. */
const SNAPPY_BOMB = Buffer.concat([
  varint(BigInt(64 * MIB)),
  Buffer.from([0, 65]),
  Buffer.alloc((3 * MIB) / 4, Buffer.from([0xfe, 1, 0])),
]);
const snappyOf = (bytes: Uint8Array): Buffer => Buffer.from(compressSnappy(new Uint8Array(bytes)));
const GZIP_BOMBS = [20 * MIB, 200 * MIB].map((size) => gzipSync(Buffer.alloc(size)));

/** Damages bytes somewhere, or cuts them off. */
const damaged = (bytes: fc.Arbitrary<Buffer>): fc.Arbitrary<Buffer> =>
  fc
    .tuple(
      bytes,
      fc.double({ min: 0, max: 1, noNaN: true, maxExcluded: true }),
      fc.integer({ min: 0, max: 255 }),
      fc.boolean(),
    )
    .map(([whole, share, byte, isCut]) => {
      const at = Math.floor(share * whole.length);
      if (isCut) return whole.subarray(0, at);
      const changed = Buffer.from(whole);
      if (changed.length > 0) changed[at] = byte;
      return changed;
    });

const compressed = fc.oneof(
  message.map(snappyOf),
  damaged(message.map(snappyOf)),
  fc
    .tuple(message, fc.constantFrom(...ABSURD_LENGTHS))
    .map(([bytes, length]) => Buffer.concat([varint(length), bytes])),
  fc.constant(SNAPPY_BOMB),
);

const typed = (type: string, bodies: fc.Arbitrary<Buffer>): fc.Arbitrary<BinaryBody> =>
  bodies.map((body) => ({ headers: { "Content-Type": type }, body }));
const gzipped = (type: string, bodies: fc.Arbitrary<Buffer>): fc.Arbitrary<BinaryBody> =>
  fc
    .oneof(
      bodies.map((body) => gzipSync(body)),
      damaged(bodies.map((body) => gzipSync(body))),
      fc.constantFrom(...GZIP_BOMBS),
    )
    .map((body) => ({ headers: { "Content-Type": type, "Content-Encoding": "gzip" }, body }));

/** Returns bodies for an operation that takes such a format, or undefined if it takes none. */
export function binaryBodies({ template, body }: Operation): fc.Arbitrary<BinaryBody> | undefined {
  const protobuf = body?.types.find((type) => type.includes("protobuf"));
  if (template.includes("/prometheus/") && protobuf !== undefined) return typed(protobuf, compressed);
  if (protobuf !== undefined)
    return fc.oneof(typed(protobuf, message), typed(protobuf, damaged(message)), gzipped(protobuf, message));
  if (body?.types.includes("text/plain") && template.includes("/influx/")) {
    return fc.oneof(typed("text/plain", lines), typed("text/plain", damaged(lines)), gzipped("text/plain", lines));
  }
  return undefined;
}
