import type { Threshold } from "./watched-rule.ts";

type Operator = Threshold["op"];

/** For each of several numbers, the range in which no quiet rule holds. */
export class QuietRanges {
  #least: number[] = [];
  #greatest: number[] = [];

  /** Makes all ranges infinite. */
  reset(count: number): void {
    this.#least = Array.from({ length: count }, () => Number.NEGATIVE_INFINITY);
    this.#greatest = Array.from({ length: count }, () => Number.POSITIVE_INFINITY);
  }

  /** Excludes the numbers with which a comparison holds. */
  exclude(i: number, op: Operator, limit: number): void {
    const [least = limit, greatest = limit] = [this.#least[i], this.#greatest[i]];
    if (op === ">") this.#greatest[i] = Math.min(greatest, limit);
    else if (op === ">=") this.#greatest[i] = Math.min(greatest, -nextAbove(-limit));
    else if (op === "<") this.#least[i] = Math.max(least, limit);
    else this.#least[i] = Math.max(least, nextAbove(limit));
  }

  includes(i: number, number: number): boolean {
    return number <= (this.#greatest[i] ?? 0) && number >= (this.#least[i] ?? 0);
  }
}

/** Returns whether a comparison holds. */
export function holds(op: Operator, limit: number, number: unknown): boolean {
  if (typeof number !== "number") return false;
  if (op === ">") return number > limit;
  if (op === ">=") return number >= limit;
  return op === "<" ? number < limit : number <= limit;
}

/** Returns the smallest number that is greater. */
function nextAbove(value: number): number {
  if (value === 0) return Number.MIN_VALUE;
  const bits = new BigInt64Array(new Float64Array([value]).buffer);
  bits[0] = (bits[0] ?? 0n) + (value > 0 ? 1n : -1n);
  return new Float64Array(bits.buffer)[0] ?? value;
}
