import { addInPlace, isSameRate, type MutableRate, newRate, type RateState, rateWith } from "../../../rules/rate.ts";
import { holds, QuietRanges } from "./quiet-ranges.ts";
import type { RateNeed, WatchedRule } from "./watched-rule.ts";

type Metrics = Readonly<Record<string, number>>;

export interface SharedRate extends RateNeed {
  rate: MutableRate;
}

/** The rates that an agent's rules compare, each once, and the ranges in which no quiet rule holds. */
export class SharedRates {
  #rates: SharedRate[] = [];
  readonly #ranges = new QuietRanges();

  get all(): readonly SharedRate[] {
    return this.#rates;
  }

  /** Sets the rates to those that the rules need. Keeps what it knows of them. */
  track(rules: readonly WatchedRule[]): void {
    const known = this.#rates;
    this.#rates = [];
    for (const { rates } of rules) {
      for (const { metric, overMs } of rates) {
        if (this.#indexOf(metric, overMs) >= 0) continue;
        const rate = known.find((one) => one.metric === metric && one.overMs === overMs)?.rate ?? newRate();
        this.#rates.push({ metric, overMs, rate });
      }
    }
  }

  /** Sets those of the rates that it has. */
  restore(stored: readonly SharedRate[]): void {
    for (const { metric, overMs, rate } of stored) {
      const own = this.#rates[this.#indexOf(metric, overMs)];
      if (own !== undefined) own.rate = rate;
    }
  }

  /** Sets the ranges to those in which no condition of these rules holds. */
  set(quiet: Iterable<WatchedRule>): void {
    this.#ranges.reset(this.#rates.length);
    for (const { rateThresholds } of quiet)
      for (const { metric, overMs, op, value } of rateThresholds)
        this.#ranges.exclude(this.#indexOf(metric, overMs), op, value);
  }

  /** Returns whether all rates are in their ranges with a report. */
  includes(atMs: number, metrics: Metrics): boolean {
    for (let i = 0; i < this.#rates.length; i++) {
      const perSecond = this.#rateWith(i, atMs, metrics);
      if (perSecond !== null && !this.#ranges.includes(i, perSecond)) return false;
    }
    return true;
  }

  /** Returns whether a condition of the rule holds with a report. */
  isReached({ rateThresholds }: WatchedRule, atMs: number, metrics: Metrics): boolean {
    return rateThresholds.some(({ metric, overMs, op, value }) =>
      holds(op, value, this.#rateWith(this.#indexOf(metric, overMs), atMs, metrics)),
    );
  }

  /** Adds the values of a report. */
  take(atMs: number, metrics: Metrics): void {
    for (const { metric, overMs, rate } of this.#rates) {
      const value: unknown = metrics[metric];
      if (typeof value === "number") addInPlace(rate, overMs, atMs, value);
    }
  }

  /** Returns the rates of a rule, as a state has them. */
  copyFor({ rates }: WatchedRule): RateState[] {
    return rates.map(({ metric, overMs }) => {
      const { perSecond, points } = this.#rates[this.#indexOf(metric, overMs)]?.rate ?? newRate();
      return { perSecond, points: [...points] };
    });
  }

  /** Returns whether these rates of a rule are those that it would get. */
  isSame({ rates }: WatchedRule, own: readonly RateState[]): boolean {
    return rates.every(({ metric, overMs }, i) => {
      const [one, shared] = [own[i], this.#rates[this.#indexOf(metric, overMs)]?.rate];
      return one !== undefined && shared !== undefined && isSameRate(one, shared);
    });
  }

  #rateWith(i: number, atMs: number, metrics: Metrics): number | null {
    const one = this.#rates[i];
    if (one === undefined) return null;
    const value: unknown = metrics[one.metric];
    return typeof value === "number" ? rateWith(one.rate.points, one.overMs, atMs, value) : null;
  }

  #indexOf(metric: string, overMs: number): number {
    return this.#rates.findIndex((one) => one.metric === metric && one.overMs === overMs);
  }
}
