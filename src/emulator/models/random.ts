/** A seeded random number generator: the same seed gives the same numbers on every machine. */
export interface Random {
  /** Returns a uniformly distributed number from 0 (inclusive) to 1 (exclusive). */
  uniform(): number;
  between(low: number, high: number): number;
  /** Returns a normally distributed number with mean 0 and deviation 1. */
  normal(): number;
  /** Returns a number of events with a Poisson distribution. */
  poisson(mean: number): number;
  chance(probability: number): boolean;
}

/** Combines numbers into a 32-bit seed. Neighbouring inputs give unrelated seeds. */
export function seedOf(...inputs: number[]): number {
  let hash = 0x9e3779b9;
  for (const input of inputs) {
    // Times in milliseconds do not fit in 32 bits.
    hash = scramble(hash ^ (input >>> 0));
    hash = scramble(hash ^ (Math.floor(input / 2 ** 32) >>> 0));
  }
  return hash;
}

/** MurmurHash3's finalizer: every bit of the input affects every bit of the output. */
function scramble(value: number): number {
  let hash = value;
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b);
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35);
  return (hash ^ (hash >>> 16)) >>> 0;
}

/** Above this mean, a rounded normal number approximates Poisson well and needs fewer draws. */
const MAX_DRAWN_POISSON_MEAN = 30;

export function createRandom(seed: number): Random {
  let state = seed >>> 0;
  /** The mulberry32 algorithm. */
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
      if (mean > MAX_DRAWN_POISSON_MEAN) return Math.max(0, Math.round(mean + Math.sqrt(mean) * normal()));
      const limit = Math.exp(-mean);
      let events = 0;
      for (let product = uniform(); product > limit; product *= uniform()) events += 1;
      return events;
    },
    chance: (probability) => uniform() < probability,
  };
}
