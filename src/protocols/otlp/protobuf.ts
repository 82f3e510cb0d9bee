import { toBase64 } from "../../lib/encoding.ts";
import { MAX_LABELS } from "../point.ts";
import { ProtobufReader } from "../protobuf.ts";
import { MAX_READ, RequestLimits } from "./limits.ts";
import {
  type AnyValue,
  type Attributes,
  type DataPoint,
  type ExplicitBuckets,
  type ExponentialBuckets,
  emptyDataPoint,
  emptyExponential,
  type Metric,
  type ResourceMetrics,
  textOf,
} from "./model.ts";

/** Reads `ExportMetricsServiceRequest` as protobuf. */
export function readRequest(bytes: Uint8Array): ResourceMetrics[] {
  return new RequestReader(bytes).resources();
}

/** Attributes that are read. One more than the limit, so that the excess is noticed. */
const MAX_ATTRIBUTES = MAX_LABELS + 1;
/** Attributes of a resource, most of which are no labels. */
const MAX_RESOURCE_ATTRIBUTES = 1_000;

class RequestReader {
  readonly #reader: ProtobufReader;
  readonly #limits = new RequestLimits();

  constructor(bytes: Uint8Array) {
    this.#reader = new ProtobufReader(bytes);
  }

  resources(): ResourceMetrics[] {
    const resources: ResourceMetrics[] = [];
    this.#reader.fields((field) => {
      if (field === 1) resources.push(this.#resource());
    });
    return resources;
  }

  #resource(): ResourceMetrics {
    this.#limits.addGroup();
    const resource: ResourceMetrics = { attributes: new Map(), metrics: [] };
    const reader = this.#reader;
    reader.message((field) => {
      if (field === 1) {
        reader.message((inner) => {
          if (inner === 1) this.#attribute(resource.attributes, MAX_RESOURCE_ATTRIBUTES);
        });
      } else if (field === 2) {
        reader.message((inner) => {
          if (inner === 2) resource.metrics.push(this.#metric());
        });
      }
    });
    return resource;
  }

  #metric(): Metric {
    this.#limits.addGroup();
    const metric: Metric = { name: "", dataPoints: [] };
    const reader = this.#reader;
    const readPoints = (begin: (point: DataPoint) => (field: number) => void): void =>
      reader.message((field) => {
        if (field !== 1) return;
        this.#limits.addDataPoint();
        const point = emptyDataPoint();
        metric.dataPoints.push(point);
        const readField = begin(point);
        reader.message((inner) => {
          if (inner === 3) point.timeNs = reader.fixed64();
          else readField(inner);
        });
      });
    reader.message((field) => {
      if (field === 1) metric.name = reader.string();
      else if (field === 5 || field === 7) readPoints((point) => this.#numberFields(point));
      else if (field === 9) readPoints((point) => this.#histogramFields(point));
      else if (field === 10) readPoints((point) => this.#exponentialFields(point));
      else if (field === 11) readPoints((point) => this.#summaryFields(point));
    });
    return metric;
  }

  #numberFields(point: DataPoint): (field: number) => void {
    const reader = this.#reader;
    return (field) => {
      if (field === 4) point.value = reader.double();
      else if (field === 6) point.value = Number(reader.sfixed64());
      else if (field === 7) this.#attribute(point.attributes, MAX_ATTRIBUTES);
      else if (field === 8) point.flags = reader.uint();
    };
  }

  #histogramFields(point: DataPoint): (field: number) => void {
    const reader = this.#reader;
    const buckets: ExplicitBuckets = { counts: [], bounds: [] };
    Object.assign(point, { count: 0, buckets });
    return (field) => {
      if (field === 4) point.count = Number(reader.fixed64());
      else if (field === 5) point.sum = reader.double();
      else if (field === 6) this.#numbers(buckets.counts, () => reader.fixed64s(buckets.counts, MAX_READ));
      else if (field === 7) this.#numbers(buckets.bounds, () => reader.doubles(buckets.bounds, MAX_READ));
      else if (field === 9) this.#attribute(point.attributes, MAX_ATTRIBUTES);
      else if (field === 10) point.flags = reader.uint();
      else if (field === 11) point.min = reader.double();
      else if (field === 12) point.max = reader.double();
    };
  }

  #exponentialFields(point: DataPoint): (field: number) => void {
    const reader = this.#reader;
    const exponential = emptyExponential();
    Object.assign(point, { count: 0, exponential });
    return (field) => {
      if (field === 1) this.#attribute(point.attributes, MAX_ATTRIBUTES);
      else if (field === 4) point.count = Number(reader.fixed64());
      else if (field === 5) point.sum = reader.double();
      else if (field === 6) exponential.scale = reader.sint();
      else if (field === 7) exponential.zeroCount = Number(reader.fixed64());
      else if (field === 8) this.#buckets(exponential.positive);
      else if (field === 9) this.#buckets(exponential.negative);
      else if (field === 10) point.flags = reader.uint();
      else if (field === 12) point.min = reader.double();
      else if (field === 13) point.max = reader.double();
      else if (field === 14) exponential.zeroThreshold = reader.double();
    };
  }

  #buckets(buckets: ExponentialBuckets["positive"]): void {
    this.#reader.message((field) => {
      if (field === 1) buckets.offset = this.#reader.sint();
      else if (field === 2) this.#numbers(buckets.counts, () => this.#reader.uints(buckets.counts, MAX_READ));
    });
  }

  /** Reads numbers into a list, and counts those that were added. */
  #numbers(list: readonly number[], read: () => void): void {
    const before = list.length;
    read();
    this.#limits.addNumbers(list.length - before);
  }

  #summaryFields(point: DataPoint): (field: number) => void {
    const reader = this.#reader;
    const quantiles: { quantile: number; value: number }[] = [];
    Object.assign(point, { count: 0, quantiles });
    return (field) => {
      if (field === 4) point.count = Number(reader.fixed64());
      else if (field === 5) point.sum = reader.double();
      else if (field === 6) {
        const at = { quantile: 0, value: 0 };
        reader.message((inner) => {
          if (inner === 1) at.quantile = reader.double();
          else if (inner === 2) at.value = reader.double();
        });
        this.#limits.addAttributes();
        if (quantiles.length < MAX_READ) quantiles.push(at);
      } else if (field === 7) this.#attribute(point.attributes, MAX_ATTRIBUTES);
      else if (field === 8) point.flags = reader.uint();
    };
  }

  #attribute(attributes: Attributes, max: number): void {
    this.#limits.addAttributes();
    const [key, value] = this.#pair();
    if (attributes.size < max) attributes.set(key, textOf(value));
  }

  #pair(): [key: string, value: AnyValue] {
    const reader = this.#reader;
    const pair: [string, AnyValue] = ["", null];
    reader.message((field) => {
      if (field === 1) pair[0] = reader.string();
      else if (field === 2) pair[1] = this.#anyValue();
    });
    return pair;
  }

  #anyValue(): AnyValue {
    const reader = this.#reader;
    let value: AnyValue = null;
    reader.message((field) => {
      if (field === 1) value = reader.string();
      else if (field === 2) value = reader.bool();
      else if (field === 3) value = reader.int();
      else if (field === 4) value = reader.double();
      else if (field === 5) value = this.#list(() => this.#anyValue());
      else if (field === 6) value = Object.fromEntries(this.#list(() => this.#pair()));
      else if (field === 7) value = toBase64(reader.bytes());
    });
    return value;
  }

  #list<T>(readItem: () => T): T[] {
    const items: T[] = [];
    this.#reader.message((field) => {
      if (field !== 1) return;
      this.#limits.addAttributes();
      items.push(readItem());
    });
    return items;
  }
}
