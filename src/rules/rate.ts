/** The change of a metric per second, between its newest value and the newest kept one that is at least a given time older. */

export interface RateState {
  /** Points to compare with, oldest first: the time and the value of each in turns. */
  points: readonly number[];
  /** Null: no point is old enough yet. */
  perSecond: number | null;
}

/** A rate that its owner may change. */
export type MutableRate = { points: number[]; perSecond: number | null };

export const newRate = (): MutableRate => ({ points: [], perSecond: null });

/**
 * A rate keeps the first point of each of so many parts of its time, however often the agent reports. So the state stays small, and depends on
 * the values of that time only: two rules that began at different times agree afterwards.
 */
const PARTS = 50;

/** Returns the rate after a value, which must be newer than the others. */
export function addToRate(rate: RateState, overMs: number, atMs: number, value: number): RateState {
  const next = { points: [...rate.points], perSecond: null };
  addInPlace(next, overMs, atMs, value);
  return next;
}

/** Adds a value, which must be newer than the others. */
export function addInPlace(rate: MutableRate, overMs: number, atMs: number, value: number): void {
  const { points } = rate;
  rate.perSecond = rateWith(points, overMs, atMs, value);
  const first = referenceOf(points, atMs - overMs);
  if (first > 0) points.splice(0, first);
  const partMs = overMs / PARTS;
  const lastMs = points[points.length - 2] ?? -Infinity;
  if (Math.floor(atMs / partMs) > Math.floor(lastMs / partMs)) points.push(atMs, value);
}

/** Returns the rate with a newer value, without adding it. */
export function rateWith(points: readonly number[], overMs: number, atMs: number, value: number): number | null {
  const first = referenceOf(points, atMs - overMs);
  const referenceMs = points[first];
  const reference = points[first + 1];
  if (referenceMs === undefined || reference === undefined || referenceMs > atMs - overMs) return null;
  return ((value - reference) * 1000) / (atMs - referenceMs);
}

/** Returns the index of the newest point that is old enough, which replaces all before it. 0 if none is. */
function referenceOf(points: readonly number[], untilMs: number): number {
  let first = 0;
  while ((points[first + 2] ?? Infinity) <= untilMs) first += 2;
  return first;
}

export const isSameRate = (one: RateState, other: RateState): boolean =>
  one.perSecond === other.perSecond &&
  one.points.length === other.points.length &&
  one.points.every((number, i) => number === other.points[i]);
