const DAY_MS = 86_400_000;
const TWO_DIGITS = Array.from({ length: 60 }, (_, i) => String(i).padStart(2, "0"));
const THREE_DIGITS = Array.from({ length: 1000 }, (_, i) => String(i).padStart(3, "0"));

/** The day of the last call, cached: the points of a chart rarely span two days. */
let dayStartMs = Number.NaN;
let dayPrefix = "";

/**
 * Returns RFC 3339 in UTC with milliseconds. The text equals that of `Date.toISOString` and takes a fraction of its time, which matters
 * for charts with thousands of points.
 */
export function toIsoTime(tsMs: number): string {
  let inDayMs = tsMs - dayStartMs;
  if (!(inDayMs >= 0 && inDayMs < DAY_MS)) {
    dayStartMs = Math.floor(tsMs / DAY_MS) * DAY_MS;
    dayPrefix = new Date(dayStartMs).toISOString().slice(0, -13);
    inDayMs = tsMs - dayStartMs;
  }
  const seconds = Math.floor(inDayMs / 1000);
  const minutes = Math.floor(seconds / 60);
  const hours = Math.floor(minutes / 60);
  return `${dayPrefix}${TWO_DIGITS[hours]}:${TWO_DIGITS[minutes % 60]}:${TWO_DIGITS[seconds % 60]}.${THREE_DIGITS[inDayMs % 1000]}Z`;
}
