/** The change of a metric per second, between its newest value and the newest kept one that is at least a given time older. */

/** Time and value. */
type Point = readonly [atMs: number, value: number];

export interface RateState {
  /** Values to compare with, oldest first. */
  points: readonly Point[];
  /** Null: no value is old enough yet. */
  perSecond: number | null;
}

export const NO_RATE: RateState = { points: [], perSecond: null };

/** Keeps this many values of the time at most, however often the agent reports. The state must stay small. */
const MAX_POINTS = 50;

/** Adds a value, which must be newer than the others. */
export function addToRate({ points }: RateState, overMs: number, atMs: number, value: number): RateState {
  let first = 0;
  // The newest point that is old enough replaces all before it.
  while (first + 1 < points.length && (points[first + 1]?.[0] ?? atMs) <= atMs - overMs) first++;
  const reference = points[first];
  const isOldEnough = reference !== undefined && reference[0] <= atMs - overMs;
  const perSecond = isOldEnough ? ((value - reference[1]) * 1000) / (atMs - reference[0]) : null;
  const last = points.at(-1);
  const isKept = last === undefined || atMs - last[0] >= overMs / MAX_POINTS;
  if (first === 0 && !isKept) return { points, perSecond };
  const kept = points.slice(first);
  if (isKept) kept.push([atMs, value]);
  return { points: kept, perSecond };
}
