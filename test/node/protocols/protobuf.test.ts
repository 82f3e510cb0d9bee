import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { ProtobufReader, ProtobufWriter } from "../../../src/protocols/protobuf.ts";

interface Everything {
  text: string;
  double: number;
  signed: number;
  unsigned: number;
  zigzag: number;
  flag: boolean;
  doubles: number[];
  uints: number[];
  children: Everything[];
}

const numbers = { min: -Number.MAX_SAFE_INTEGER, max: Number.MAX_SAFE_INTEGER };
const messageWith = (children: fc.Arbitrary<Everything[]>): fc.Arbitrary<Everything> =>
  fc.record({
    text: fc.string({ unit: "grapheme" }),
    double: fc.double({ noNaN: true }),
    signed: fc.integer(numbers),
    unsigned: fc.maxSafeNat(),
    zigzag: fc.integer({ min: -(2 ** 51), max: 2 ** 51 }),
    flag: fc.boolean(),
    doubles: fc.array(fc.double({ noNaN: true }), { maxLength: 5 }),
    uints: fc.array(fc.maxSafeNat(), { maxLength: 5 }),
    children,
  });
const leaf = messageWith(fc.constant([]));
const message = messageWith(fc.array(messageWith(fc.array(leaf, { maxLength: 2 })), { maxLength: 2 }));

function write(value: Everything, writer = new ProtobufWriter()): Uint8Array {
  writeFields(value, writer);
  return writer.finish();
}

function writeFields(value: Everything, writer: ProtobufWriter): void {
  writer.writeStringField(1, value.text);
  writer.writeDoubleField(2, value.double);
  writer.writeVarintField(3, value.signed);
  writer.writeVarintField(4, value.unsigned);
  writer.writeSVarintField(5, value.zigzag);
  writer.writeBooleanField(6, value.flag);
  writer.writePackedDouble(7, value.doubles);
  writer.writePackedVarint(8, value.uints);
  for (const child of value.children) writer.writeMessage(9, writeFields, child);
  // Fields that the reader does not know.
  writer.writeStringField(100, "unknown");
  writer.writeFixed32Field(101, 1);
  writer.writeFixed64Field(102, 1);
  writer.writeVarintField(103, 300);
}

function read(bytes: Uint8Array): Everything {
  const reader = new ProtobufReader(bytes);
  const value = emptyMessage();
  reader.fields((field) => readField(reader, field, value));
  return value;
}

const emptyMessage = (): Everything => ({
  ...{ text: "", double: 0, signed: 0, unsigned: 0, zigzag: 0, flag: false, doubles: [], uints: [], children: [] },
});

function readField(reader: ProtobufReader, field: number, value: Everything): void {
  if (field === 1) value.text = reader.string();
  else if (field === 2) value.double = reader.double();
  else if (field === 3) value.signed = reader.int();
  else if (field === 4) value.unsigned = reader.uint();
  else if (field === 5) value.zigzag = reader.sint();
  else if (field === 6) value.flag = reader.bool();
  else if (field === 7) reader.doubles(value.doubles, 1_000);
  else if (field === 8) reader.uints(value.uints, 1_000);
  else if (field === 9) {
    const child = emptyMessage();
    reader.message((inner) => readField(reader, inner, child));
    value.children.push(child);
  }
}

const readBytes = (...bytes: number[]) => read(Uint8Array.from(bytes));

describe("a protobuf message", () => {
  it("has the values from which it was written", () => {
    fc.assert(
      fc.property(message, (value) => {
        expect(read(write(value))).toEqual(value);
      }),
    );
  });

  it("may have repeated numbers that are not packed", () => {
    expect(readBytes(0x40, 1, 0x40, 0xac, 0x02)).toMatchObject({ uints: [1, 300] });
  });

  it("has 64-bit integers with all their bits", () => {
    const bytes = Uint8Array.of(0x09, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff);
    const values: bigint[] = [];
    for (const method of ["fixed64", "sfixed64"] as const) {
      const reader = new ProtobufReader(bytes);
      reader.fields(() => values.push(reader[method]()));
    }
    expect(values).toEqual([2n ** 64n - 1n, -1n]);
  });

  it("is malformed if a value goes beyond its end, or beyond the end of its message", () => {
    for (const bytes of [
      [0x0a],
      [0x0a, 0x05, 0x61],
      [0x0a, 0xff, 0xff, 0xff, 0xff, 0x0f],
      [0x0a, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01],
      [0x11, 1, 2, 3],
      [0x18],
      [0x18, 0x80],
      [0x3a, 0x07, 1, 2, 3, 4, 5, 6, 7],
      [0x42, 0x02, 0x01, 0x80, 0x01],
      // The inner message ends before its string does.
      [0x4a, 0x02, 0x0a, 0x05, 1, 2, 3, 4, 5],
      [0x4a, 0x01, 0x18, 0x01],
    ]) {
      expect(() => readBytes(...bytes)).toThrow("Invalid protobuf: the message is truncated");
    }
  });

  it("is malformed if a field has another type than expected", () => {
    expect(() => readBytes(0x08, 1)).toThrow("another type");
    expect(() => readBytes(0x12, 0)).toThrow("another type");
    expect(() => readBytes(0x1a, 0)).toThrow("another type");
    expect(() => readBytes(0x48, 0)).toThrow("another type");
  });

  it("is malformed if a field has the number 0, an unknown type or an endless integer", () => {
    expect(() => readBytes(0x00)).toThrow("no valid number");
    expect(() => readBytes(0xf8, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01, 0)).toThrow("no valid number");
    for (const type of [3, 4, 6, 7]) expect(() => readBytes(0xa0 + type, 0x06)).toThrow("unknown type");
    expect(() => readBytes(0x18, ...Array<number>(11).fill(0xff))).toThrow("too long");
  });

  it("is malformed if a string is not UTF-8, short or long", () => {
    expect(() => readBytes(0x0a, 1, 0xff)).toThrow("not UTF-8");
    expect(() => readBytes(0x0a, 2, 0x61, 0xc3)).toThrow("not UTF-8");
    expect(() => readBytes(0x0a, 40, ...Array<number>(39).fill(0x61), 0xff)).toThrow("not UTF-8");
  });

  it("is malformed if it is nested very deeply", () => {
    let bytes: number[] = [];
    for (let depth = 0; depth < 40; depth += 1) bytes = [0x4a, bytes.length, ...bytes];
    expect(() => readBytes(...bytes)).toThrow("nested too deeply");
  });

  it("never causes another error than malformed", () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 100 }), (bytes) => {
        try {
          read(bytes);
        } catch (error) {
          expect(error).toMatchObject({ code: "malformed" });
        }
      }),
      { numRuns: 2_000 },
    );
  });

  it("is read completely or not at all if it is truncated", () => {
    fc.assert(
      fc.property(message, fc.nat(), (value, cut) => {
        const bytes = write(value);
        try {
          read(bytes.subarray(0, cut % bytes.length));
        } catch (error) {
          expect(error).toMatchObject({ code: "malformed" });
        }
      }),
    );
  });
});
