/** Values as texts. */

const COMPACT_FROM = 10_000_000;
const GROUPED_FROM = 1_000;

const whole = new Intl.NumberFormat("en-GB", { maximumFractionDigits: 0 });
const twoDigits = new Intl.NumberFormat("en-GB", { maximumSignificantDigits: 2 });
const fourDigits = new Intl.NumberFormat("en-GB", { maximumSignificantDigits: 4 });
const compact = new Intl.NumberFormat("en-GB", { notation: "compact", maximumSignificantDigits: 4 });

/** Returns the value of a metric with about four digits, or a dash for undefined. */
export function numberText(value: number | undefined): string {
  if (value === undefined) return "–";
  const size = Math.abs(value);
  return (size >= COMPACT_FROM ? compact : size >= GROUPED_FROM ? whole : fourDigits).format(value);
}

/**
 * Returns short numbers for the axis of a chart: "12.5k". If they cannot be told apart, which happens with large counters, all but the first
 * are distances from it: "1.795bn", "+100", "+200".
 */
export function tickTexts(ascending: readonly number[]): string[] {
  const texts = ascending.map((value) => compact.format(value));
  if (new Set(texts).size === texts.length) return texts;
  const [first = 0] = ascending;
  return texts.map((text, i) => (i === 0 ? text : `+${compact.format((ascending[i] ?? first) - first)}`));
}

export const countText = (count: number): string => whole.format(count);

/** Returns a count with its noun: "1 row", "2,000 rows". */
export const countOf = (count: number, one: string, many = `${one}s`): string =>
  `${countText(count)} ${count === 1 ? one : many}`;

/** Returns a share from 0 to 1 as a percentage, or a dash for null. */
export const percentText = (share: number | null): string => (share === null ? "–" : `${Math.round(share * 100)} %`);

/** Returns a size with its unit: "3.4 MB". */
export function sizeText(bytes: number): string {
  if (bytes < 1_000) return `${bytes} B`;
  const [size, unit] = bytes < 1_000_000 ? [bytes / 1_000, "KB"] : [bytes / 1_000_000, "MB"];
  return `${(size < 10 ? twoDigits : whole).format(size)} ${unit}`;
}

/**
 * Returns a value as a field of CSV (RFC 4180). Escapes the first character of formulas: access points choose these texts, and a
 * spreadsheet would execute them.
 */
export function csvField(value: unknown): string {
  if (typeof value === "number") return String(value);
  const original = typeof value === "string" ? value : value == null ? "" : JSON.stringify(value);
  const text = /^[=+\-@\t\r\n]/.test(original) ? `'${original}` : original;
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

/**
 * Returns a record's own value. For names from access points, apps or the address: an inherited name such as "constructor" returns
 * undefined.
 */
export const own = <V>(record: Readonly<Record<string, V>>, name: string): V | undefined =>
  Object.hasOwn(record, name) ? record[name] : undefined;
