import { BEYOND, BUCKETS_MS, METRICS, type MetricDefinition, SUM } from "./catalog.ts";

/** Prometheus' text format, version 0.0.4: https://prometheus.io/docs/instrumenting/exposition_formats/ */

export const CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8";

/** The values, by series. Those of a figure that this version does not know, which an earlier one left behind, are passed over. */
export function toText(values: ReadonlyMap<string, number>): string {
  const byFigure = Map.groupBy(values, ([series]) => series.split(" ", 1)[0] ?? "");
  const lines = Object.entries<MetricDefinition>(METRICS).flatMap(([name, figure]) => {
    const own = new Map(byFigure.get(name)?.map(([series, value]) => [series.slice(name.length + 1), value]));
    if (own.size === 0) return [];
    const linesOf = figure.type === "histogram" ? histogramLines : plainLines;
    return [`# HELP ${name} ${figure.help}`, `# TYPE ${name} ${figure.type}`, ...linesOf(name, figure, own)];
  });
  return `${lines.join("\n")}\n`;
}

const plainLines = (name: string, { labels }: MetricDefinition, own: ReadonlyMap<string, number>): string[] =>
  [...own].toSorted(byWords).map(([words, value]) => `${name}${inBraces(pairs(labels, words))} ${value}`);

function histogramLines(name: string, { labels }: MetricDefinition, own: ReadonlyMap<string, number>): string[] {
  const all = new Set([...own.keys()].map((words) => words.slice(0, words.lastIndexOf(" "))));
  return [...all].toSorted().flatMap((words) => {
    const of = (word: string): number => own.get(`${words} ${word}`) ?? 0;
    const labelled = pairs(labels, words);
    let count = 0;
    // Each bucket holds those below it, too.
    const bucket = (word: string, le: string): string => {
      count += of(word);
      return `${name}_bucket${inBraces([...labelled, `le="${le}"`])} ${count}`;
    };
    const buckets = BUCKETS_MS.map((ms) => bucket(String(ms), String(ms / 1_000)));
    const end = inBraces(labelled);
    return [...buckets, bucket(BEYOND, BEYOND), `${name}_sum${end} ${of(SUM) / 1_000}`, `${name}_count${end} ${count}`];
  });
}

const byWords = ([a]: [string, number], [b]: [string, number]): number => (a < b ? -1 : 1);

/** Words have nothing in them that a label's value would have to escape. */
const pairs = (labels: readonly string[], words: string): string[] => {
  const values = words.split(" ");
  return labels.map((label, i) => `${label}="${values[i]}"`);
};

const inBraces = (labels: readonly string[]): string => (labels.length === 0 ? "" : `{${labels.join(",")}}`);
