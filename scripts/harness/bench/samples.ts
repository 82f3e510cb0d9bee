import type { LoadResult } from "../workload.ts";

/** What the agents of a bench send, and what is told of every load. */

export const FIELDS = 10;

/** A report's fields. */
export const fields = (prefix: string, value: number): Record<string, number> =>
  Object.fromEntries(Array.from({ length: FIELDS }, (_, i) => [`${prefix}_${i}`, value + i]));

export const latencies = ({ p50Ms, p99Ms, failures }: LoadResult) => ({
  "p50 ms": p50Ms,
  "p99 ms": p99Ms,
  ...(Object.keys(failures).length > 0 && { failures: JSON.stringify(failures) }),
});
