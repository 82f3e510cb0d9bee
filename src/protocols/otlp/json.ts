import { parseJson } from "../json.ts";
import { malformed } from "../protocol-error.ts";
import { MAX_READ, RequestLimits } from "./limits.ts";
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
  return new JsonReader().resources(parseJson(bytes, "Invalid OTLP: the body is not JSON"));
}

type Fields = Record<string, unknown>;

class JsonReader {
  readonly #limits = new RequestLimits();

  resources(request: unknown): ResourceMetrics[] {
    return listOf(objectOf(request, "request"), "resourceMetrics").map((fields) => this.#resource(fields));
  }

  #resource(fields: Fields): ResourceMetrics {
    this.#limits.addGroup();
    const resource = objectOf(fields.resource ?? {}, "resource");
    const metrics = listOf(fields, "scopeMetrics").flatMap((scope) =>
      listOf(scope, "metrics").map((metric) => this.#metric(metric)),
    );
    return { attributes: this.#attributes(resource), metrics };
  }

  #metric(fields: Fields): Metric {
    this.#limits.addGroup();
    const pointsOf = (kind: string, toDataPoint: (point: Fields) => Partial<DataPoint>): DataPoint[] => {
      const data = fields[kind];
      if (data === undefined || data === null) return [];
      return listOf(objectOf(data, kind), "dataPoints").map((point) => {
        this.#limits.addDataPoint();
        return { ...this.#common(point), ...toDataPoint(point) };
      });
    };
    const dataPoints = [
      ...pointsOf("gauge", toNumberPoint),
      ...pointsOf("sum", toNumberPoint),
      ...pointsOf("histogram", (point) => this.#histogram(point)),
      ...pointsOf("exponentialHistogram", (point) => this.#exponential(point)),
      ...pointsOf("summary", (point) => this.#summary(point)),
    ];
    return { name: stringOf(fields, "name"), dataPoints };
  }

  #common(fields: Fields): DataPoint {
    const time = fields.timeUnixNano ?? 0;
    if (typeof time !== "number" && !(typeof time === "string" && /^\d{1,20}$/.test(time))) throw wrong("timeUnixNano");
    if (typeof time === "number" && !(Number.isInteger(time) && time >= 0)) throw wrong("timeUnixNano");
    return {
      ...emptyDataPoint(),
      attributes: this.#attributes(fields),
      timeNs: BigInt(time),
      flags: numberOf(fields, "flags"),
    };
  }

  #histogram(fields: Fields): Partial<DataPoint> {
    const buckets = { counts: this.#numbers(fields, "bucketCounts"), bounds: this.#numbers(fields, "explicitBounds") };
    return { ...totalsOf(fields), buckets };
  }

  #exponential(fields: Fields): Partial<DataPoint> {
    const bucketsOf = (name: string): ExponentialBuckets["positive"] => {
      const buckets = objectOf(fields[name] ?? {}, name);
      return { offset: numberOf(buckets, "offset"), counts: this.#numbers(buckets, "bucketCounts") };
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

  #summary(fields: Fields): Partial<DataPoint> {
    const listed = listOf(fields, "quantileValues").slice(0, MAX_READ);
    this.#limits.addAttributes(listed.length);
    const quantiles = listed.map((at) => ({ quantile: numberOf(at, "quantile"), value: numberOf(at, "value") }));
    return { ...totalsOf(fields), quantiles };
  }

  #numbers(fields: Fields, name: string): number[] {
    const items = itemsOf(fields, name).slice(0, MAX_READ);
    this.#limits.addNumbers(items.length);
    return items.map((item) => toNumber(item, name));
  }

  #attributes(fields: Fields): Attributes {
    const pairs = listOf(fields, "attributes");
    this.#limits.addAttributes(pairs.length);
    return new Map(pairs.map((pair) => [stringOf(pair, "key"), textOf(this.#anyValue(pair.value, 0))]));
  }

  #anyValue(value: unknown, depth: number): AnyValue {
    checkDepth(depth);
    const fields = objectOf(value ?? {}, "value");
    if (fields.stringValue !== undefined) return stringOf(fields, "stringValue");
    if (typeof fields.boolValue === "boolean") return fields.boolValue;
    if (fields.intValue !== undefined) return numberOf(fields, "intValue");
    if (fields.doubleValue !== undefined) return numberOf(fields, "doubleValue");
    if (fields.bytesValue !== undefined) return stringOf(fields, "bytesValue");
    if (fields.arrayValue !== undefined) {
      const items = itemsOf(objectOf(fields.arrayValue, "arrayValue"), "values");
      this.#limits.addAttributes(items.length);
      return items.map((item) => this.#anyValue(item, depth + 1));
    }
    if (fields.kvlistValue === undefined) return null;
    const pairs = listOf(objectOf(fields.kvlistValue, "kvlistValue"), "values");
    this.#limits.addAttributes(pairs.length);
    return Object.fromEntries(pairs.map((pair) => [stringOf(pair, "key"), this.#anyValue(pair.value, depth + 1)]));
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

/** Sets a field of a data point if it is given. */
function optional<N extends string>(fields: Fields, name: N): Partial<Record<N, number>> {
  const value = fields[name];
  return value === undefined || value === null ? {} : ({ [name]: toNumber(value, name) } as Record<N, number>);
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
