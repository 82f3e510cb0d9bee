import type { Random } from "./random.ts";

/** Noise with memory: an AR(1) process with mean 0, whose steps may be of any length. */
export interface Noise {
  deviation: number;
  /** After this long, a third of a deviation is left. */
  memoryS: number;
}

export const startNoise = ({ deviation }: Noise, random: Random): number => deviation * random.normal();

export function stepNoise(previous: number, { deviation, memoryS }: Noise, elapsedS: number, random: Random): number {
  const kept = Math.exp(-elapsedS / memoryS);
  return kept * previous + deviation * Math.sqrt(1 - kept * kept) * random.normal();
}

/** As a factor around 1 that is never negative. */
export const asFactor = (noise: number): number => Math.exp(noise);
