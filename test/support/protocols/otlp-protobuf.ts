import { fromBase64 } from "../../../src/lib/encoding.ts";
import { ProtobufWriter } from "../../../src/protocols/protobuf.ts";

/** Writes OTLP requests as protobuf from their JSON form, to test both encodings with the same requests. */

export type Json = string | number | boolean | null | Json[] | { [key: string]: Json };

type Type =
  | "string"
  | "double"
  | "doubles"
  | "fixed64"
  | "fixed64s"
  | "sfixed64"
  | "uint"
  | "uints"
  | "sint"
  | "int"
  | "bool"
  | "bytes";
type Schema = { [name: string]: [field: number, type: Type | (() => Schema)] };

const value = (): Schema => ({
  stringValue: [1, "string"],
  boolValue: [2, "bool"],
  intValue: [3, "int"],
  doubleValue: [4, "double"],
  arrayValue: [5, () => ({ values: [1, value] })],
  kvlistValue: [6, () => ({ values: [1, pair] })],
  bytesValue: [7, "bytes"],
});
const pair = (): Schema => ({ key: [1, "string"], value: [2, value] });
const buckets = (): Schema => ({ offset: [1, "sint"], bucketCounts: [2, "uints"] });

const number = (): Schema => ({
  ...{ timeUnixNano: [3, "fixed64"], asDouble: [4, "double"], asInt: [6, "sfixed64"] },
  ...{ attributes: [7, pair], flags: [8, "uint"] },
});
const histogram = (): Schema => ({
  ...{ timeUnixNano: [3, "fixed64"], count: [4, "fixed64"], sum: [5, "double"], bucketCounts: [6, "fixed64s"] },
  ...{
    explicitBounds: [7, "doubles"],
    attributes: [9, pair],
    flags: [10, "uint"],
    min: [11, "double"],
    max: [12, "double"],
  },
});
const exponential = (): Schema => ({
  ...{
    attributes: [1, pair],
    timeUnixNano: [3, "fixed64"],
    count: [4, "fixed64"],
    sum: [5, "double"],
    scale: [6, "sint"],
  },
  ...{ zeroCount: [7, "fixed64"], positive: [8, buckets], negative: [9, buckets], flags: [10, "uint"] },
  ...{ min: [12, "double"], max: [13, "double"], zeroThreshold: [14, "double"] },
});
const summary = (): Schema => ({
  ...{
    timeUnixNano: [3, "fixed64"],
    count: [4, "fixed64"],
    sum: [5, "double"],
    attributes: [7, pair],
    flags: [8, "uint"],
  },
  quantileValues: [6, () => ({ quantile: [1, "double"], value: [2, "double"] })],
});

const data = (point: () => Schema) => (): Schema => ({ dataPoints: [1, point] });
const metric = (): Schema => ({
  ...{ name: [1, "string"], gauge: [5, data(number)], sum: [7, data(number)], histogram: [9, data(histogram)] },
  ...{ exponentialHistogram: [10, data(exponential)], summary: [11, data(summary)] },
});
const scope = (): Schema => ({ scope: [1, () => ({ name: [1, "string"] })], metrics: [2, metric] });
const resource = (): Schema => ({ resource: [1, () => ({ attributes: [1, pair] })], scopeMetrics: [2, scope] });

export function encodeRequest(request: Json): Uint8Array {
  const writer = new ProtobufWriter();
  writeMessage(request, { resourceMetrics: [1, resource] }, writer);
  return writer.finish();
}

function writeMessage(message: Json, schema: Schema, writer: ProtobufWriter): void {
  for (const [name, content] of Object.entries(message as { [key: string]: Json })) {
    const [field, type] = schema[name] ?? [0, "string"];
    if (field === 0) throw new Error(`Unknown field ${name}`);
    if (typeof type === "string") writeScalar(writer, field, type, content);
    else
      for (const item of Array.isArray(content) ? content : [content])
        writer.writeMessage(field, (inner: Json, target) => writeMessage(inner, type(), target), item);
  }
}

function writeScalar(writer: ProtobufWriter, field: number, type: Type, content: Json): void {
  const numbers = (Array.isArray(content) ? content : [content]).map(Number);
  const [first = 0] = numbers;
  if (type === "string") writer.writeStringField(field, String(content));
  else if (type === "bytes") writer.writeBytesField(field, fromBase64(String(content)));
  else if (type === "bool") writer.writeBooleanField(field, Boolean(content));
  else if (type === "double") writer.writeDoubleField(field, first);
  else if (type === "doubles") writer.writePackedDouble(field, numbers);
  else if (type === "uints") writer.writePackedVarint(field, numbers);
  else if (type === "sint") writer.writeSVarintField(field, first);
  else if (type === "fixed64s") writer.writePackedFixed64(field, numbers);
  else if (type === "uint" || type === "int") writer.writeVarintField(field, first);
  else {
    const bits = new DataView(new ArrayBuffer(8));
    bits.setBigInt64(0, BigInt(String(content)), true);
    writer.writeTag(field, 1);
    for (let i = 0; i < 8; i += 4) writer.writeFixed32(bits.getUint32(i, true));
  }
}
