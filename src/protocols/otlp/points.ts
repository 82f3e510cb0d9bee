import { shortened } from "../metric-name.ts";
import { type Decoded, isTooLong, MAX_LABELS, NAME_TOO_LONG, PointCollector } from "../point.ts";
import { MAX_BUCKETS } from "./limits.ts";
import type { Attributes, DataPoint, ResourceMetrics } from "./model.ts";
import { estimateQuantile, explicitBuckets, exponentialBuckets } from "./quantiles.ts";

const NS_PER_MS = 1_000_000n;
/** The flag of a data point without a value: the series has ended. */
const NO_RECORDED_VALUE = 1;

/** Quantiles that are estimated from the buckets of a histogram. */
const QUANTILES = [
  ["p50", 0.5],
  ["p90", 0.9],
  ["p99", 0.99],
] as const;

/**
 * Turns data points into points. The attributes of a data point become labels, and so do those of its resource that are kept. Attributes
 * of the resource that name the agent stay apart: an access point may report values about another one, with the same attribute.
 *
 * A histogram or a summary has several values: `name.count`, `name.sum`, `name.min`, `name.max`, and quantiles as `name.p50`. Sums keep
 * their temporality: the value of a cumulative sum is the total since the start of the sender, and that of a delta is the change.
 */
export function toPoints(
  resources: readonly ResourceMetrics[],
  resourceLabels: readonly string[],
  naming: readonly string[],
): Decoded {
  const collector = new PointCollector();
  let origin = 0;
  for (const { attributes: ofResource, metrics } of resources) {
    const kept = [...ofResource].filter(([key]) => resourceLabels.includes(key));
    const names = [...ofResource].filter(([key]) => naming.includes(key));
    const agentLabels = names.length === 0 ? undefined : Object.fromEntries(names);
    for (const { name, dataPoints } of metrics) {
      for (const dataPoint of dataPoints) {
        origin += 1;
        if ((dataPoint.flags & NO_RECORDED_VALUE) !== 0) continue;
        const { attributes, timeNs } = dataPoint;
        const values = rejectionReason(name, attributes) ?? valuesOf(dataPoint);
        if (typeof values === "string") {
          collector.reject({ name: shortened(name), reason: values, origin });
          continue;
        }
        // All values of a data point share their labels. An attribute of the data point is more specific than one of the resource.
        const labels = Object.fromEntries([...kept, ...attributes]);
        const tsMs = timeNs === 0n ? undefined : Number(timeNs / NS_PER_MS);
        for (const [suffix, value] of values) {
          collector.add({ name: suffix === "" ? name : `${name}.${suffix}`, labels, agentLabels, tsMs, value, origin });
        }
      }
    }
  }
  return collector;
}

function rejectionReason(name: string, attributes: Attributes): string | undefined {
  if (isTooLong(name)) return NAME_TOO_LONG;
  return attributes.size > MAX_LABELS ? `has more than ${MAX_LABELS} attributes` : undefined;
}

type Values = [suffix: string, value: number][];

/** Returns the values of a data point with the ends of their names, or why it has none. */
function valuesOf({ value, count, sum, min, max, buckets, exponential, quantiles }: DataPoint): Values | string {
  if (value !== undefined) return [["", value]];
  if (count === undefined) return "has no value";
  const lists = [
    buckets?.counts,
    buckets?.bounds,
    exponential?.positive.counts,
    exponential?.negative.counts,
    quantiles,
  ];
  if (lists.some((list = []) => list.length > MAX_BUCKETS)) return `has more than ${MAX_BUCKETS} buckets or quantiles`;
  const found = buckets === undefined ? [] : explicitBuckets(buckets, { min, max });
  if (found === undefined) return "has bounds that do not fit its buckets";
  const all = exponential === undefined ? found : exponentialBuckets(exponential);
  const optional: [string, number | undefined][] = [
    ["sum", sum],
    ["min", min],
    ["max", max],
    ...QUANTILES.map(([name, q]): [string, number | undefined] => [name, estimateQuantile(all, q, { min, max })]),
    // A summary without observations has quantiles that are NaN.
    ...(quantiles ?? []).map((at): [string, number | undefined] => [
      quantileName(at.quantile),
      Number.isNaN(at.value) ? undefined : at.value,
    ]),
  ];
  return [["count", count], ...optional.filter((entry): entry is [string, number] => entry[1] !== undefined)];
}

/** Returns `p99.9` for 0.999. The quantiles 0 and 1 of a summary are its minimum and maximum. */
function quantileName(quantile: number): string {
  if (quantile === 0) return "min";
  if (quantile === 1) return "max";
  return `p${Number((quantile * 100).toPrecision(12))}`;
}
