/** The service's clock, by which charts, ages and periods are told: the browser's own may be minutes off. */

let aheadMs = 0;

export const serviceNowMs = (): number => Date.now() + aheadMs;

/** What an answer says of the time, having been asked for then and come now. */
export function heardTime(date: string | null, askedMs: number, nowMs: number): void {
  if (date !== null) aheadMs = correctedMs(aheadMs, Date.parse(date), askedMs, nowMs);
}

/**
 * How far the service is ahead of us: what we took it for, or the nearest to it that goes with the answer. It was given at some time
 * within its second, between asking and now.
 */
export function correctedMs(takenForMs: number, dateMs: number, askedMs: number, nowMs: number): number {
  if (Number.isNaN(dateMs)) return takenForMs;
  return Math.min(dateMs + 999 - askedMs, Math.max(dateMs - nowMs, takenForMs));
}
