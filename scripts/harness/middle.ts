/** The one in the middle: what a machine does besides pushes figures apart, and less often moves this one. */
export function middle<T>(values: readonly T[], by: (value: T) => number): T {
  return values.toSorted((a, b) => by(a) - by(b))[Math.floor(values.length / 2)] as T;
}
