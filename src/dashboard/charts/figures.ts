/** Numbers as people read them. */

/** From here on, the thousands are counted rather than the digits. */
const COMPACT_FROM = 10_000_000;
const GROUPED_FROM = 1_000;

const compact = new Intl.NumberFormat("en-GB", { notation: "compact", maximumSignificantDigits: 4 });
const grouped = new Intl.NumberFormat("en-GB", { maximumFractionDigits: 0 });
const plain = new Intl.NumberFormat("en-GB", { maximumSignificantDigits: 4 });
const tick = new Intl.NumberFormat("en-GB", { notation: "compact", maximumSignificantDigits: 4 });

export function figureText(value: number | undefined): string {
  if (value === undefined) return "–";
  const size = Math.abs(value);
  return (size >= COMPACT_FROM ? compact : size >= GROUPED_FROM ? grouped : plain).format(value);
}

/** For the axis of a chart, where room is short. */
export const tickText = (value: number): string => tick.format(value);

/** A label says its unit in brackets at the end. */
export function labelParts(label: string): { title: string; unit: string } {
  const [, title = label, unit = ""] = /^(.+) \(([^()]+)\)$/.exec(label) ?? [];
  return { title, unit };
}
