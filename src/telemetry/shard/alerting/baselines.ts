import { HOUR_MS } from "../../../rules/baseline.ts";
import type { BaselineLookup } from "../../../rules/evaluator.ts";
import type { EngineStore } from "./engine-store.ts";
import type { BaselineNeed } from "./watched-rule.ts";

/** Late samples may be of the hour before. */
const KEPT_HOURS = 2;

export const hourStart = (atMs: number): number => Math.floor(atMs / HOUR_MS) * HOUR_MS;
const keyOf = ({ metric, days }: BaselineNeed, hourMs: number): string => `${hourMs} ${days} ${metric}`;

/** The means of earlier days that rules compare with, for the hours around the present. They are in SQLite for a replay after a restart. */
export class Baselines {
  readonly #store: EngineStore;
  /** Key → agent → mean. */
  readonly #means = new Map<string, ReadonlyMap<string, number>>();
  /** Hours that have been loaded for all agents of the shard. */
  readonly #complete = new Set<string>();

  constructor(store: EngineStore) {
    this.#store = store;
    // Written by `set`.
    for (const { key, value } of store.baselines())
      this.#means.set(key, new Map(JSON.parse(value) as [apId: string, mean: number][]));
  }

  lookup(apId: string): BaselineLookup {
    return (metric, days, atMs) => this.#means.get(keyOf({ metric, days }, hourStart(atMs)))?.get(apId);
  }

  /** Returns whether the means of an hour are known for all agents. */
  has(need: BaselineNeed, hourMs: number): boolean {
    return this.#complete.has(keyOf(need, hourMs));
  }

  set(need: BaselineNeed, hourMs: number, means: ReadonlyMap<string, number>): void {
    const key = keyOf(need, hourMs);
    this.#means.set(key, means);
    this.#complete.add(key);
    this.#store.saveBaseline(key, hourMs, JSON.stringify([...means]));
  }

  /** Forgets which hours are complete, because there are other agents or rules. */
  invalidate(): void {
    this.#complete.clear();
  }

  dropOld(nowMs: number): void {
    const firstMs = hourStart(nowMs) - (KEPT_HOURS - 1) * HOUR_MS;
    this.#store.deleteBaselinesBefore(firstMs);
    for (const key of this.#means.keys()) if (Number(key.slice(0, key.indexOf(" "))) < firstMs) this.#means.delete(key);
    for (const key of this.#complete) if (Number(key.slice(0, key.indexOf(" "))) < firstMs) this.#complete.delete(key);
  }
}
