/** When a failed delivery is tried again. */

const FIRST_RETRY_MS = 1_000;
const MAX_RETRY_MS = 15 * 60_000;
/** Delays differ by up to this share, so that receivers do not get all their retries at once after an outage. */
const JITTER = 0.2;

/** A subscription that has failed for this long is stopped. */
export const STOP_AFTER_MS = 24 * 3_600_000;

/** @param failures attempts that have failed in a row, at least 1. @param chance from 0 to 1 */
export function retryDelayMs(failures: number, chance: number): number {
  const delayMs = Math.min(FIRST_RETRY_MS * 2 ** Math.min(failures - 1, 20), MAX_RETRY_MS);
  return Math.round(delayMs * (1 - JITTER + 2 * JITTER * chance));
}
