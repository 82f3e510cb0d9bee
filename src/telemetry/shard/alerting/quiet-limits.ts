import { holds, QuietRanges } from "./quiet-ranges.ts";
import type { WatchedRule } from "./watched-rule.ts";

/** A metric, its last value (null: never reported), and the time of the last value. */
export type LastValue = [metric: string, value: number | null, atMs: number];

/** The last values of the metrics that an agent's rules compare, and the ranges in which no quiet rule holds. */
export class QuietLimits {
  #metrics: string[] = [];
  #values: (number | null)[] = [];
  #timesMs: number[] = [];
  readonly #ranges = new QuietRanges();

  /** Sets the metrics, and keeps the values of those that it has already. @param lastMs the time of the last report */
  track(rules: readonly WatchedRule[], lastMs: number): void {
    const known = this.lastValues();
    this.#metrics = [...new Set(rules.flatMap(({ compiled }) => compiled.metrics))];
    this.restore(known, lastMs);
  }

  /** Returns all values, to store them. */
  lastValues(): LastValue[] {
    return this.#metrics.map((metric, i) => [metric, this.#values[i] ?? null, this.#timesMs[i] ?? 0]);
  }

  /** Sets the values. What was reported until `lastMs` does not count for a metric whose time is not known. */
  restore(values: readonly LastValue[], lastMs: number): void {
    const known = new Map(values.map((value) => [value[0], value]));
    this.#values = this.#metrics.map((metric) => known.get(metric)?.[1] ?? null);
    this.#timesMs = this.#metrics.map((metric) => known.get(metric)?.[2] ?? lastMs);
  }

  /** Returns the metrics of a report of which the last value is older. Undefined: none. */
  newerThanLast(atMs: number, metrics: Readonly<Record<string, number>>): Record<string, number> | undefined {
    const newer = this.#metrics.flatMap((metric, i): [string, number][] => {
      const value: unknown = metrics[metric];
      return typeof value === "number" && atMs > (this.#timesMs[i] ?? 0) ? [[metric, value]] : [];
    });
    return newer.length === 0 ? undefined : Object.fromEntries(newer);
  }

  /** Returns the last value of a metric. Null: never reported. */
  valueOf(metric: string): number | null {
    return this.#values[this.#metrics.indexOf(metric)] ?? null;
  }

  /** Sets the ranges to those in which no condition of these rules holds. */
  set(quiet: Iterable<WatchedRule>): void {
    this.#ranges.reset(this.#metrics.length);
    for (const { thresholds = [] } of quiet)
      for (const { metric, op, value } of thresholds) this.#ranges.exclude(this.#metrics.indexOf(metric), op, value);
  }

  /** Returns whether all metrics of a report are in their ranges. */
  includes(metrics: Readonly<Record<string, number>>): boolean {
    const names = this.#metrics;
    for (let i = 0; i < names.length; i++) {
      const value: unknown = metrics[names[i] ?? ""];
      if (typeof value === "number" && !this.#ranges.includes(i, value)) return false;
    }
    return true;
  }

  /** Returns whether a condition of the rule holds with the metrics of a report. */
  isReached({ thresholds = [] }: WatchedRule, metrics: Readonly<Record<string, number>>): boolean {
    return thresholds.some(({ metric, op, value }) => holds(op, value, metrics[metric]));
  }

  /** Records the values of a report. */
  take(atMs: number, metrics: Readonly<Record<string, number>>): void {
    const names = this.#metrics;
    for (let i = 0; i < names.length; i++) {
      const value: unknown = metrics[names[i] ?? ""];
      if (typeof value !== "number") continue;
      this.#values[i] = value;
      this.#timesMs[i] = atMs;
    }
  }
}
