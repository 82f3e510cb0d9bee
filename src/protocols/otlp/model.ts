import { malformed } from "../protocol-error.ts";

/** The messages of OTLP metrics, as both encodings are read. */

export interface ResourceMetrics {
  attributes: Attributes;
  metrics: Metric[];
}

/** Key → text of the value. */
export type Attributes = Map<string, string>;

export interface Metric {
  name: string;
  dataPoints: DataPoint[];
}

/** A data point of any kind of metric. It has the fields of its kind. */
export interface DataPoint {
  attributes: Attributes;
  timeNs: bigint;
  flags: number;
  /** Of a gauge or a sum. */
  value?: number;
  count?: number;
  sum?: number;
  min?: number;
  max?: number;
  buckets?: ExplicitBuckets;
  exponential?: ExponentialBuckets;
  quantiles?: { quantile: number; value: number }[];
}

export interface ExplicitBuckets {
  counts: number[];
  bounds: number[];
}

export interface ExponentialBuckets {
  scale: number;
  zeroCount: number;
  zeroThreshold: number;
  positive: { offset: number; counts: number[] };
  negative: { offset: number; counts: number[] };
}

export const emptyDataPoint = (): DataPoint => ({ attributes: new Map(), timeNs: 0n, flags: 0 });

export const emptyExponential = (): ExponentialBuckets => ({
  scale: 0,
  zeroCount: 0,
  zeroThreshold: 0,
  positive: { offset: 0, counts: [] },
  negative: { offset: 0, counts: [] },
});

/** The value of an attribute. Lists and maps may be nested. */
export type AnyValue = string | number | boolean | null | AnyValue[] | { [key: string]: AnyValue };

/** Lists in lists. `JSON.stringify` would need one stack frame for each. */
const MAX_DEPTH = 16;

/** Returns the value of an attribute as the text of a label: a string as it is, other values as JSON. */
export const textOf = (value: AnyValue): string => (typeof value === "string" ? value : JSON.stringify(value));

export function checkDepth(depth: number): void {
  if (depth > MAX_DEPTH) throw malformed("Invalid OTLP: the value of an attribute is nested too deeply");
}
