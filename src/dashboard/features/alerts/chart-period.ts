/** The period of the chart of an alert. */

const MINUTE_MS = 60_000;
const DAY_MS = 1_440 * MINUTE_MS;
const MIN_MARGIN_MS = 20 * MINUTE_MS;
/** The longer ago, the coarser are the points that the service returns. */
const MARGIN_SHARE = 1 / 100;
const MAX_LENGTH_MS = 6 * 60 * MINUTE_MS;
/** The longest window of the service. */
const MAX_WINDOW_MS = 31 * DAY_MS;

export interface ChartPeriod {
  fromMs: number;
  untilMs: number;
}

/** Returns the time around the moment when an alert fired, up to its end if that is soon. Undefined if it is too long ago. */
export function chartPeriod(firedMs: number, resolvedMs: number | undefined, nowMs: number): ChartPeriod | undefined {
  const marginMs = Math.max(MIN_MARGIN_MS, (nowMs - firedMs) * MARGIN_SHARE);
  const fromMs = firedMs - marginMs;
  if (nowMs - fromMs > MAX_WINDOW_MS) return undefined;
  const endMs = Math.min(resolvedMs ?? nowMs, firedMs + MAX_LENGTH_MS);
  return { fromMs, untilMs: Math.min(nowMs, Math.max(endMs, firedMs) + marginMs) };
}
