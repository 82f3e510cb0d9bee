/** Chance from a seed: the same seed gives the same numbers, on every machine. */

export interface Random {
  /** Even between 0 (with) and 1 (without). */
  uniform(): number;
  between(low: number, high: number): number;
  /** Normal with mean 0 and deviation 1. */
  normal(): number;
  /** How many of the events of a Poisson process with this mean happened. */
  poisson(mean: number): number;
  chance(probability: number): boolean;
}

/** One 32-bit seed out of several numbers; neighbours in any of them give unrelated seeds. */
export function seedOf(...parts: number[]): number {
  let hash = 0x9e3779b9;
  for (const part of parts) {
    // Times in milliseconds do not fit in 32 bits.
    hash = scramble(hash ^ (part >>> 0));
    hash = scramble(hash ^ (Math.floor(part / 2 ** 32) >>> 0));
  }
  return hash;
}

/** MurmurHash3's finisher: every bit of the input moves every bit of the output. */
function scramble(value: number): number {
  let hash = value;
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b);
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35);
  return (hash ^ (hash >>> 16)) >>> 0;
}

/** Above this mean a rounded normal is as good as Poisson, and does not take as many draws as there are events. */
const POISSON_BY_DRAWS_MAX = 30;

export function createRandom(seed: number): Random {
  let state = seed >>> 0;
  /** mulberry32. */
  const uniform = (): number => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
  const normal = (): number => Math.sqrt(-2 * Math.log(1 - uniform())) * Math.cos(2 * Math.PI * uniform());
  return {
    uniform,
    between: (low, high) => low + (high - low) * uniform(),
    normal,
    poisson(mean) {
      if (mean > POISSON_BY_DRAWS_MAX) return Math.max(0, Math.round(mean + Math.sqrt(mean) * normal()));
      const limit = Math.exp(-mean);
      let events = 0;
      for (let product = uniform(); product > limit; product *= uniform()) events += 1;
      return events;
    },
    chance: (probability) => uniform() < probability,
  };
}
