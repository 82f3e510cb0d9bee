import type { Condition } from "../schemas/alerts/rule.ts";

/**
 * The values at which the conditions of a rule change, for one metric. They divide all numbers into ranges. Within a range, each condition
 * has one result, so a rule needs to see a metric only when it enters another range.
 */

export interface Cut {
  value: number;
  /** Whether the value itself is above the cut. */
  isInclusive: boolean;
}

/** A rule whose conditions compare metrics with fixed values, and look for absence. */
export interface CutRule {
  /** The cuts of each metric of the rule, ascending. */
  cuts: ReadonlyMap<string, readonly Cut[]>;
  /** The shortest time without a report that matters. Undefined: none does. */
  absenceMs: number | undefined;
}

/** Returns the cuts of conditions. Undefined if a condition depends on more than the range of each metric. */
export function cutsOf(conditions: readonly Condition[]): CutRule | undefined {
  const cuts = new Map<string, Cut[]>();
  let absenceMs: number | undefined;
  const pending = [...conditions];
  for (let one = pending.pop(); one !== undefined; one = pending.pop()) {
    if ("any" in one) pending.push(...one.any);
    else if ("all" in one) pending.push(...one.all);
    else if ("no_report_s" in one) absenceMs = Math.min(absenceMs ?? Infinity, Math.round(one.no_report_s * 1000));
    else if ("rate_of" in one || "baseline" in one) return undefined;
    else {
      const cut = { value: one.value, isInclusive: one.op === ">=" || one.op === "<" };
      const others = cuts.get(one.metric) ?? [];
      if (!others.some(({ value, isInclusive }) => value === cut.value && isInclusive === cut.isInclusive))
        cuts.set(one.metric, [...others, cut].toSorted(byPosition));
    }
  }
  return { cuts, absenceMs };
}

/** At one value, the inclusive cut comes first: the value is between the two. */
const byPosition = (a: Cut, b: Cut): number => a.value - b.value || Number(b.isInclusive) - Number(a.isInclusive);

/** Returns a number of a range: above the first `range` cuts, and below the others. */
export function numberIn(range: number, cuts: readonly Cut[]): number {
  const cut = cuts[range - 1];
  if (cut === undefined) return -Infinity;
  return cut.isInclusive ? cut.value : nextAbove(cut.value);
}

/** Returns the smallest number that is greater. */
export function nextAbove(value: number): number {
  if (value === 0) return Number.MIN_VALUE;
  const bits = new BigInt64Array(new Float64Array([value]).buffer);
  bits[0] = (bits[0] ?? 0n) + (value > 0 ? 1n : -1n);
  return new Float64Array(bits.buffer)[0] ?? value;
}
