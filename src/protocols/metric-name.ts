/**
 * The names of metrics of other systems, in both directions. A metric with labels is stored as `name{key="value",…}`, sorted by key;
 * without labels just as `name`. `parseMetricName` returns exactly what `formatMetricName` was given.
 */

export type Labels = Readonly<Record<string, string>>;

export interface MetricName {
  name: string;
  labels: Labels;
}

/** Characters of a name that is stored, with its labels. */
export const MAX_NAME_LENGTH = 256;

/** Shortens a name that is too long to be stored, for a message about it. */
export const shortened = (name: string): string => (name.length > MAX_NAME_LENGTH ? `${name.slice(0, 100)}…` : name);

const ESCAPED_IN_NAME = /[\\{]/g;
const ESCAPED_IN_KEY = /[\\=\n]/g;
const ESCAPED_IN_VALUE = /[\\"\n]/g;

/** A newline is written as `\n`, as in Prometheus. Every other character stands for itself after a backslash. */
const withBackslashes = (text: string, pattern: RegExp): string =>
  text.replace(pattern, (found) => (found === "\n" ? "\\n" : `\\${found}`));

export function formatMetricName(name: string, labels: Labels): string {
  const stored = withBackslashes(name, ESCAPED_IN_NAME);
  const pairs = Object.entries(labels);
  if (pairs.length === 0) return stored;
  const written = pairs
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([key, value]) => `${withBackslashes(key, ESCAPED_IN_KEY)}="${withBackslashes(value, ESCAPED_IN_VALUE)}"`);
  return `${stored}{${written.join()}}`;
}

/**
 * Parses the name of a stored metric. An agent may report any name, so this accepts all texts: one that `formatMetricName` does not write
 * is the name itself, without labels.
 */
export function parseMetricName(stored: string): MetricName {
  // Most names have neither. A name without a backslash and a brace stands for itself.
  if (!/[\\{]/.test(stored)) return { name: stored, labels: {} };
  return parseEscaped(stored) ?? { name: stored, labels: {} };
}

function parseEscaped(stored: string): MetricName | undefined {
  const name = readUntil(stored, 0, "{");
  if (name === undefined) return undefined;
  if (name.end === stored.length) return { name: name.text, labels: {} };
  const pairs: [string, string][] = [];
  let at = name.end;
  do {
    const key = readUntil(stored, at + 1, "=");
    if (key === undefined || stored[key.end + 1] !== '"') return undefined;
    const value = readUntil(stored, key.end + 2, '"');
    if (value === undefined || value.end === stored.length) return undefined;
    pairs.push([key.text, value.text]);
    at = value.end + 1;
  } while (stored[at] === ",");
  if (stored[at] !== "}" || at + 1 !== stored.length) return undefined;
  const labels = Object.fromEntries(pairs);
  return Object.keys(labels).length === pairs.length ? { name: name.text, labels } : undefined;
}

/** Reads up to the first `stop` without a backslash, or to the end. Undefined if the text ends with an open backslash. */
function readUntil(stored: string, start: number, stop: string): { text: string; end: number } | undefined {
  let text = "";
  let at = start;
  for (; at < stored.length && stored[at] !== stop; at += 1) {
    if (stored[at] !== "\\") {
      text += stored[at];
      continue;
    }
    at += 1;
    if (at >= stored.length) return undefined;
    text += stored[at] === "n" ? "\n" : stored[at];
  }
  return { text, end: at };
}

/** Returns the name of an InfluxDB field: `measurement.field`, with a backslash before a `.` or `\` of the measurement. */
export const formatInfluxName = (measurement: string, field: string): string =>
  `${withBackslashes(measurement, /[\\.]/g)}.${field}`;

/** Returns what `formatInfluxName` was given. Undefined if the name has no unescaped `.`. */
export function parseInfluxName(name: string): { measurement: string; field: string } | undefined {
  const match = /^((?:[^\\.]|\\.)*)\.(.*)$/s.exec(name);
  if (match === null) return undefined;
  const [, measurement = "", field = ""] = match;
  return { measurement: measurement.replace(/\\(.)/gs, "$1"), field };
}

const ESCAPED_PREFIX = "U__";
const PROMETHEUS_NAME = /^[a-zA-Z_:][a-zA-Z0-9_:]*$/;
const PROMETHEUS_LABEL = /^[a-zA-Z_][a-zA-Z0-9_]*$/;

/**
 * Writes a name in the characters that every version of Prometheus accepts, by its escaping scheme `values`: `U__` first, `_` as `__`, and
 * other characters as `_<hexadecimal code point>_`. A valid name stays, unless it begins with `U__`: it must not read as an escaped one.
 */
export const escapePrometheusName = (name: string): string => escapeValues(name, PROMETHEUS_NAME, /[a-zA-Z0-9:]/);
/** Like `escapePrometheusName`, for the name of a label, which has no colon. */
export const escapePrometheusLabel = (name: string): string => escapeValues(name, PROMETHEUS_LABEL, /[a-zA-Z0-9]/);

function escapeValues(name: string, valid: RegExp, kept: RegExp): string {
  if (valid.test(name) && !name.startsWith(ESCAPED_PREFIX)) return name;
  const written = Array.from(name, (char, i) => {
    if (char === "_") return "__";
    if (kept.test(char) && (i > 0 || !/\d/.test(char))) return char;
    return `_${(char.codePointAt(0) ?? 0).toString(16)}_`;
  });
  return ESCAPED_PREFIX + written.join("");
}

/** Returns the name that was escaped. A name that is not escaped correctly is returned unchanged, as Prometheus does. */
export function unescapePrometheusName(escaped: string): string {
  if (!escaped.startsWith(ESCAPED_PREFIX)) return escaped;
  const text = escaped.slice(ESCAPED_PREFIX.length);
  if (!/^(?:[a-zA-Z0-9:]|__|_[0-9a-f]{1,6}_)*$/i.test(text)) return escaped;
  const codes = [...text.matchAll(/_([0-9a-f]{1,6})_|__/gi)].map(([, code = "5f"]) => Number.parseInt(code, 16));
  if (codes.some((code) => code > 0x10ffff || (code >= 0xd800 && code <= 0xdfff))) return escaped;
  return text.replace(/_([0-9a-f]{1,6})_|__/gi, (_, code = "5f") => String.fromCodePoint(Number.parseInt(code, 16)));
}
