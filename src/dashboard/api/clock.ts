import { useEffect, useState } from "preact/hooks";

/** The service's clock. Charts, ages and periods use it because the browser's clock may be minutes off. */

/** How far the service's clock is ahead of the browser's. */
let offsetMs = 0;

export const serviceNowMs = (): number => Date.now() + offsetMs;

/** Returns the service's time, and renders again after each interval. The interval may depend on the time. */
export function useServiceNowMs(intervalMsAt: (nowMs: number) => number): number {
  const [nowMs, setNowMs] = useState(serviceNowMs);
  const intervalMs = intervalMsAt(nowMs);
  useEffect(() => {
    const timer = setInterval(() => setNowMs(serviceNowMs()), intervalMs);
    return () => clearInterval(timer);
  }, [intervalMs]);
  return nowMs;
}

/** Updates the clock from the `Date` header of a response. */
export function updateClock(date: string | null, sentMs: number, receivedMs: number): void {
  if (date !== null) offsetMs = correctedOffsetMs(offsetMs, Date.parse(date), sentMs, receivedMs);
}

/**
 * Returns the offset closest to the current one that agrees with a response. The header is truncated to a second, and the service
 * wrote it between `sentMs` and `receivedMs`.
 */
export function correctedOffsetMs(currentMs: number, dateMs: number, sentMs: number, receivedMs: number): number {
  if (Number.isNaN(dateMs)) return currentMs;
  return Math.min(dateMs + 999 - sentMs, Math.max(dateMs - receivedMs, currentMs));
}
