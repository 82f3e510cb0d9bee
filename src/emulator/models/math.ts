import type { Random } from "./random.ts";

export const clamp = (value: number, low: number, high: number): number => Math.min(high, Math.max(low, value));

/** Rounds a value, so that telemetry has no meaningless digits. */
export function round(value: number, digits: number): number {
  const scale = 10 ** digits;
  // Adding zero turns -0 into 0.
  return Math.round(value * scale) / scale + 0;
}

/** Returns the utilisation (0–1) of a resource for a demand relative to its capacity. About equal to a low demand, and never above 1. */
export const saturate = (demand: number): number => demand / (1 + demand ** 4) ** 0.25;

/** Returns the factor by which a queue of this utilisation (0–1) delays: 1 when empty, about 30 when full. */
export const queueingFactor = (utilisation: number): number => 1 / (1 - 0.967 * utilisation);

export const fromDecibels = (decibels: number): number => 10 ** (decibels / 10);
export const toDecibels = (ratio: number): number => 10 * Math.log10(ratio);

/** Noise with memory: an AR(1) process with mean 0 and steps of any length. */
export interface Noise {
  deviation: number;
  /** Time constant: after this time, the influence of a value has decayed to 1/e. */
  memoryS: number;
}

export const startNoise = ({ deviation }: Noise, random: Random): number => deviation * random.normal();

export function stepNoise(previous: number, { deviation, memoryS }: Noise, elapsedS: number, random: Random): number {
  const kept = Math.exp(-elapsedS / memoryS);
  return kept * previous + deviation * Math.sqrt(1 - kept * kept) * random.normal();
}

/** Converts noise to a positive factor around 1. */
export const asFactor = (noise: number): number => Math.exp(noise);
