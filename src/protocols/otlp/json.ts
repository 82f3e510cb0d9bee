import { MAX_POINTS, tooManyPoints } from "../point.ts";
import { malformed } from "../protocol-error.ts";
import {
  type AnyValue,
  type Attributes,
  checkDepth,
  type DataPoint,
  type ExponentialBuckets,
  emptyDataPoint,
  type Metric,
  type ResourceMetrics,
  textOf,
} from "./model.ts";

/** Reads `ExportMetricsServiceRequest` as JSON, with the names of fields in camel case and 64-bit integers as strings or numbers. */
export function readJsonRequest(bytes: Uint8Array): ResourceMetrics[] {
  return listOf(objectOf(parse(bytes), "request"), "resourceMetrics").map(toResource);
}

type Fields = Record<string, unknown>;

const utf8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: false });

function parse(bytes: Uint8Array): unknown {
  try {
    return JSON.parse(utf8.decode(bytes));
  } catch {
    throw malformed("Invalid OTLP: the body is not JSON");
  }
}

const wrong = (field: string) => malformed(`Invalid OTLP: ${field} has another type`);

function objectOf(value: unknown, field: string): Fields {
  if (typeof value !== "object" || value === null || Array.isArray(value)) throw wrong(field);
  return value as Fields;
}

/** Returns the objects of a list. As in protobuf, a field that is missing or null has its default value. */
function listOf(fields: Fields, name: string): Fields[] {
  return itemsOf(fields, name).map((item) => objectOf(item, name));
}

function itemsOf(fields: Fields, name: string): unknown[] {
  const list = fields[name] ?? [];
  if (!Array.isArray(list)) throw wrong(name);
  if (list.length > MAX_POINTS) throw tooManyPoints();
  return list;
}

function stringOf(fields: Fields, name: string): string {
  const value = fields[name] ?? "";
  if (typeof value !== "string") throw wrong(name);
  // JSON may have half of a character as an escape, which UTF-8 cannot encode.
  return value.toWellFormed();
}

function toNumber(value: unknown, field: string): number {
  if (typeof value === "number") return value;
  if (typeof value === "string" && /^(?:-?\d+(?:\.\d+)?(?:e[+-]?\d+)?|NaN|-?Infinity)$/i.test(value))
    return Number(value);
  throw wrong(field);
}

const numberOf = (fields: Fields, name: string): number => toNumber(fields[name] ?? 0, name);
const numbersOf = (fields: Fields, name: string): number[] => itemsOf(fields, name).map((item) => toNumber(item, name));

/** Sets a field of a data point if it is given. */
function optional<N extends string>(fields: Fields, name: N): Partial<Record<N, number>> {
  const value = fields[name];
  return value === undefined || value === null ? {} : ({ [name]: toNumber(value, name) } as Record<N, number>);
}

function toResource(fields: Fields): ResourceMetrics {
  const resource = objectOf(fields.resource ?? {}, "resource");
  const metrics = listOf(fields, "scopeMetrics").flatMap((scope) => listOf(scope, "metrics").map(toMetric));
  return { attributes: attributesOf(resource), metrics };
}

function toMetric(fields: Fields): Metric {
  const dataPoints = KINDS.flatMap(([kind, toDataPoint]) => {
    const data = fields[kind];
    if (data === undefined || data === null) return [];
    return listOf(objectOf(data, kind), "dataPoints").map((point) => ({ ...commonOf(point), ...toDataPoint(point) }));
  });
  return { name: stringOf(fields, "name"), dataPoints };
}

function commonOf(fields: Fields): DataPoint {
  const time = fields.timeUnixNano ?? 0;
  if (typeof time !== "number" && !(typeof time === "string" && /^\d{1,20}$/.test(time))) throw wrong("timeUnixNano");
  if (typeof time === "number" && !(Number.isInteger(time) && time >= 0)) throw wrong("timeUnixNano");
  return {
    ...emptyDataPoint(),
    attributes: attributesOf(fields),
    timeNs: BigInt(time),
    flags: numberOf(fields, "flags"),
  };
}

const toNumberPoint = ({ asDouble, asInt }: Fields): Partial<DataPoint> => {
  if (asDouble !== undefined && asDouble !== null) return { value: toNumber(asDouble, "asDouble") };
  return asInt === undefined || asInt === null ? {} : { value: toNumber(asInt, "asInt") };
};

const totalsOf = (fields: Fields): Partial<DataPoint> => ({
  count: numberOf(fields, "count"),
  ...optional(fields, "sum"),
  ...optional(fields, "min"),
  ...optional(fields, "max"),
});

const toHistogram = (fields: Fields): Partial<DataPoint> => ({
  ...totalsOf(fields),
  buckets: { counts: numbersOf(fields, "bucketCounts"), bounds: numbersOf(fields, "explicitBounds") },
});

function toExponential(fields: Fields): Partial<DataPoint> {
  const bucketsOf = (name: string): ExponentialBuckets["positive"] => {
    const buckets = objectOf(fields[name] ?? {}, name);
    return { offset: numberOf(buckets, "offset"), counts: numbersOf(buckets, "bucketCounts") };
  };
  return {
    ...totalsOf(fields),
    exponential: {
      scale: numberOf(fields, "scale"),
      zeroCount: numberOf(fields, "zeroCount"),
      zeroThreshold: numberOf(fields, "zeroThreshold"),
      positive: bucketsOf("positive"),
      negative: bucketsOf("negative"),
    },
  };
}

const toSummary = (fields: Fields): Partial<DataPoint> => ({
  ...totalsOf(fields),
  quantiles: listOf(fields, "quantileValues").map((at) => ({
    quantile: numberOf(at, "quantile"),
    value: numberOf(at, "value"),
  })),
});

const KINDS = [
  ["gauge", toNumberPoint],
  ["sum", toNumberPoint],
  ["histogram", toHistogram],
  ["exponentialHistogram", toExponential],
  ["summary", toSummary],
] as const;

function attributesOf(fields: Fields): Attributes {
  return new Map(
    listOf(fields, "attributes").map((pair) => [stringOf(pair, "key"), textOf(toAnyValue(pair.value, 0))]),
  );
}

function toAnyValue(value: unknown, depth: number): AnyValue {
  checkDepth(depth);
  const fields = objectOf(value ?? {}, "value");
  if (fields.stringValue !== undefined) return stringOf(fields, "stringValue");
  if (typeof fields.boolValue === "boolean") return fields.boolValue;
  if (fields.intValue !== undefined) return numberOf(fields, "intValue");
  if (fields.doubleValue !== undefined) return numberOf(fields, "doubleValue");
  if (fields.bytesValue !== undefined) return stringOf(fields, "bytesValue");
  if (fields.arrayValue !== undefined) {
    return itemsOf(objectOf(fields.arrayValue, "arrayValue"), "values").map((item) => toAnyValue(item, depth + 1));
  }
  if (fields.kvlistValue === undefined) return null;
  const pairs = listOf(objectOf(fields.kvlistValue, "kvlistValue"), "values");
  return Object.fromEntries(pairs.map((pair) => [stringOf(pair, "key"), toAnyValue(pair.value, depth + 1)]));
}
