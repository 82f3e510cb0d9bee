export const clamp = (value: number, low: number, high: number): number => Math.min(high, Math.max(low, value));

/** Telemetry does not carry digits that mean nothing. */
export function round(value: number, digits: number): number {
  const scale = 10 ** digits;
  // Adding zero turns -0 into 0.
  return Math.round(value * scale) / scale + 0;
}

/** How full something is that is asked for `asked` times what it can do: as asked while that is little, never more than full. */
export const saturate = (asked: number): number => asked / (1 + asked ** 4) ** 0.25;

/** How much longer things take in a queue that is this full (0–1): 1 when empty, about 30 when full. */
export const queueingFactor = (utilisation: number): number => 1 / (1 - 0.967 * utilisation);

export const fromDecibels = (decibels: number): number => 10 ** (decibels / 10);
export const toDecibels = (ratio: number): number => 10 * Math.log10(ratio);
