import type { Supervisor } from "../../../src/programs/stack/supervisor.ts";
import type { TestUser } from "../accounts.ts";
import type { ClickHouse } from "../clickhouse.ts";
import type { ApiClient } from "../client.ts";
import type { Product } from "../product.ts";
import { median } from "../stats.ts";
import { cpuOf } from "../usage.ts";
import type { Workerd } from "../workerd.ts";
import { generateLoad, type LoadOptions, type LoadRequest, type LoadResult } from "./load.ts";
import type { Report } from "./report.ts";

/** What the suites share. */

export interface BenchContext {
  product: Product;
  client: ApiClient;
  clickhouse: ClickHouse;
  user: TestUser;
  /** The bare Worker on the same workerd. */
  bare: Workerd;
  bareBuildDir: string;
  /** For further processes, which end with the suite. */
  supervisor: Supervisor;
  /** Runs work when the suite ends or is interrupted. */
  atEnd(work: () => Promise<unknown>): void;
  signal: AbortSignal;
  folder: string;
  seconds: number;
  isQuick: boolean;
  /** Points of the history. */
  rows: number | undefined;
  report: Report;
}

export const CONNECTIONS = 32;
export const ME = "/api/v1/users/me";

/** Returns the ten fields of a report. */
export const fields = (prefix: string, value: number): Record<string, number> =>
  Object.fromEntries(Array.from({ length: 10 }, (_, i) => [`${prefix}_${i}`, value + i]));

export interface SuiteLoad extends Partial<Omit<LoadOptions, "next" | "seconds">> {
  /** Components whose CPU time is added to the details. */
  components?: string[];
  /** Has these components. Defaults to the product. */
  processes?: Pick<Product, "pidOf">;
}

/** Sends requests to the product, unless the options name another URL. */
export async function load(
  { product, seconds }: BenchContext,
  next: LoadRequest | LoadOptions["next"],
  { components = [], processes = product, ...options }: SuiteLoad = {},
): Promise<LoadResult> {
  const cpuPer = cpuOf(processes, components);
  const defaults = { url: product.url, connections: CONNECTIONS, seconds };
  const result = await generateLoad({ ...defaults, ...options, next: typeof next === "function" ? next : () => next });
  return { ...result, details: { ...result.details, ...cpuPer(result.count) } };
}

export const loadBareHono = (context: BenchContext, options: SuiteLoad = {}): Promise<LoadResult> =>
  load(context, { path: "/" }, { url: context.bare.url, ...options });

/** Measures a route of Hono with nothing behind it. Returns requests per second. */
export async function measureBareHono(context: BenchContext): Promise<number> {
  const { perSecond, details } = await loadBareHono(context);
  context.report.add("bare Hono route", perSecond, "/s", details);
  return perSecond;
}

export const meanMs = ({ perSecond }: { perSecond: number }): number => 1000 / perSecond;

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
