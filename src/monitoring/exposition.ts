import { BUCKETS_MS, INFINITE, METRICS, type MetricDefinition, SUM } from "./catalog.ts";

/** The text format of Prometheus, version 0.0.4: https://prometheus.io/docs/instrumenting/exposition_formats/ */

export const CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8";

/** Formats the values by series. Skips metrics that this version does not define: the ledger may hold those of another version. */
export function toText(values: ReadonlyMap<string, number>): string {
  const byMetric = Map.groupBy(values, ([series]) => series.split(" ", 1)[0] ?? "");
  const lines = Object.entries<MetricDefinition>(METRICS).flatMap(([name, metric]) => {
    const own = new Map(byMetric.get(name)?.map(([series, value]) => [series.slice(name.length + 1), value]));
    if (own.size === 0) return [];
    const linesOf = metric.type === "histogram" ? histogramLines : plainLines;
    return [`# HELP ${name} ${metric.help}`, `# TYPE ${name} ${metric.type}`, ...linesOf(name, metric, own)];
  });
  return `${lines.join("\n")}\n`;
}

const plainLines = (name: string, { labels }: MetricDefinition, own: ReadonlyMap<string, number>): string[] =>
  [...own]
    .toSorted(byLabelValues)
    .map(([labelValues, value]) => `${name}${inBraces(pairs(labels, labelValues))} ${value}`);

function histogramLines(name: string, { labels }: MetricDefinition, own: ReadonlyMap<string, number>): string[] {
  const labelSets = new Set([...own.keys()].map((key) => key.slice(0, key.lastIndexOf(" "))));
  return [...labelSets].toSorted().flatMap((labelValues) => {
    const valueIn = (bucket: string): number => own.get(`${labelValues} ${bucket}`) ?? 0;
    const labelPairs = pairs(labels, labelValues);
    let count = 0;
    // Buckets are cumulative: each includes the smaller ones.
    const line = (bucket: string, le: string): string => {
      count += valueIn(bucket);
      return `${name}_bucket${inBraces([...labelPairs, `le="${le}"`])} ${count}`;
    };
    const buckets = BUCKETS_MS.map((ms) => line(String(ms), String(ms / 1_000)));
    const labelText = inBraces(labelPairs);
    return [
      ...buckets,
      line(INFINITE, INFINITE),
      `${name}_sum${labelText} ${valueIn(SUM) / 1_000}`,
      `${name}_count${labelText} ${count}`,
    ];
  });
}

const byLabelValues = ([a]: [string, number], [b]: [string, number]): number => (a < b ? -1 : 1);

/** Does not escape the values: they never contain quotes, backslashes or line breaks. */
const pairs = (labels: readonly string[], labelValues: string): string[] => {
  const values = labelValues.split(" ");
  return labels.map((label, i) => `${label}="${values[i]}"`);
};

const inBraces = (labels: readonly string[]): string => (labels.length === 0 ? "" : `{${labels.join(",")}}`);
