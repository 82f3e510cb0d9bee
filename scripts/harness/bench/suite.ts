import type { Supervisor } from "../../../src/programs/stack/supervisor.ts";
import type { ApiClient } from "../client.ts";
import type { Product } from "../product.ts";
import { median } from "../stats.ts";
import { generateLoad, type LoadRequest, type LoadResult } from "../workload.ts";
import type { Report } from "./report.ts";

/** What the suites share. */

export interface BenchContext {
  product: Product;
  client: ApiClient;
  /** The bare Worker on the same workerd. */
  bareUrl: string;
  supervisor: Supervisor;
  folder: string;
  signal: AbortSignal;
  seconds: number;
  isQuick: boolean;
  /** Points of the history. */
  rows: number | undefined;
  /** Jobs of the crowd, and idle sockets. */
  jobs: number | undefined;
  socketsPerJob: number;
  report: Report;
}

/** Returns the ten fields of a report. */
export const fields = (prefix: string, value: number): Record<string, number> =>
  Object.fromEntries(Array.from({ length: 10 }, (_, i) => [`${prefix}_${i}`, value + i]));

export const latencies = ({ p50Ms, p99Ms, failures }: LoadResult) => ({
  "p50 ms": p50Ms,
  "p99 ms": p99Ms,
  ...(Object.keys(failures).length > 0 && { failures: JSON.stringify(failures) }),
});

export const byRate = ({ perSecond }: LoadResult): number => perSecond;

export const CONNECTIONS = 32;
export const GET_ROOT: LoadRequest = { method: "GET", path: "/" };

/** Measures a route of Hono with nothing behind it. Returns requests per second. */
export async function measureBareHono({ bareUrl, seconds, report }: BenchContext): Promise<number> {
  const result = await generateLoad({ url: bareUrl, seconds, connections: CONNECTIONS, next: () => GET_ROOT });
  report.add("bare Hono route", result.perSecond, "/s", { details: latencies(result) });
  return result.perSecond;
}

/** Measures several alternatives in turns, so that other work on the machine affects all of them. Returns the medians. */
export async function inTurns<Name extends string, T>(
  measures: Record<Name, () => Promise<T>>,
  by: (result: T) => number,
  rounds = 3,
): Promise<Record<Name, T>> {
  const entries = Object.entries(measures) as [Name, () => Promise<T>][];
  const results = entries.map((): T[] => []);
  for (let round = 0; round < rounds; round++) {
    for (const [i, [, measure]] of entries.entries()) results[i]?.push(await measure());
  }
  return Object.fromEntries(entries.map(([name], i) => [name, median(results[i] ?? [], by)])) as Record<Name, T>;
}
