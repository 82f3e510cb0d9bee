import type { SeriesLabels } from "./series.ts";

/**
 * Writes the text formats that Prometheus scrapes: OpenMetrics 1.0, and the older text format 0.0.4 for all other readers. They differ in
 * the name of the type of metrics whose type is not known.
 */

export type TextFormat = "openmetrics" | "text";

export const TEXT_TYPES: Record<TextFormat, string> = {
  openmetrics: "application/openmetrics-text; version=1.0.0; charset=utf-8; escaping=values",
  text: "text/plain; version=0.0.4; charset=utf-8; escaping=values",
};

/** Returns the format for an `Accept` header. Only a reader that knows OpenMetrics names it. */
export const textFormatFor = (accept: string | undefined): TextFormat =>
  /(?:^|,)\s*application\/openmetrics-text\s*(?:[;,]|$)/i.test(accept ?? "") ? "openmetrics" : "text";

/** All series with one name. */
export interface MetricFamily {
  name: string;
  help: string;
  type: "unknown" | "gauge";
  /** The labels include the name. No time: the reader takes the time of its request, and notices when a series ends. */
  series: readonly { labels: SeriesLabels; value: number }[];
}

/** Yields one text for each family, and the end of the file. Names must be valid for all versions of Prometheus. */
export function* encodeFamilies(families: Iterable<MetricFamily>, format: TextFormat): Generator<string> {
  for (const { name, help, type, series } of families) {
    const written = type === "unknown" && format === "text" ? "untyped" : type;
    const lines = series.map(({ labels, value }) => `${name}${inBraces(labels)} ${value}`);
    yield `# HELP ${name} ${escapeHelp(help, format)}\n# TYPE ${name} ${written}\n${lines.join("\n")}\n`;
  }
  // A comment in the older format.
  yield "# EOF\n";
}

const inBraces = (labels: SeriesLabels): string => {
  const pairs = labels
    .filter(([name]) => name !== "__name__")
    .map(([name, value]) => `${name}="${escapeValue(value)}"`);
  return pairs.length === 0 ? "" : `{${pairs.join()}}`;
};

const escapeValue = (text: string): string => text.replace(/[\\"\n]/g, (char) => (char === "\n" ? "\\n" : `\\${char}`));

/** The older format has no escape for quotes here. */
const escapeHelp = (text: string, format: TextFormat): string =>
  format === "openmetrics" ? escapeValue(text) : text.replace(/[\\\n]/g, (char) => (char === "\n" ? "\\n" : "\\\\"));
