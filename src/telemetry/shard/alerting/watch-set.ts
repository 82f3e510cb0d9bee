import { nextDueMs, type RuleState } from "../../../rules/evaluator.ts";
import { QuietLimits } from "./quiet-limits.ts";
import { SharedRates } from "./shared-rates.ts";
import type { WatchedRule } from "./watched-rule.ts";

/** A rule and its state for one agent. */
export interface Watch {
  rule: WatchedRule;
  /** Undefined: nothing is known yet. */
  state: RuleState | undefined;
  /** When a tick may change the state, in the time of the agent's samples. */
  dueMs: number;
  /** The alert that fires. Undefined for a rule about groups: their alerts are in libSQL. */
  alert: FiringAlert | undefined;
}

export interface FiringAlert {
  id: string;
  firedMs: number;
}

export const newWatch = (rule: WatchedRule, state?: RuleState, alert?: FiringAlert): Watch => ({
  rule,
  state,
  dueMs: state === undefined ? Number.POSITIVE_INFINITY : nextDueMs(rule.compiled, state),
  alert,
});

/**
 * The rules of one agent. Most of them are quiet: they neither fire nor are about to, and do so only if a metric or its rate leaves a range. A
 * report is compared with the ranges of all quiet rules at once, so its cost does not depend on their number, and they need no state: it
 * follows from the agent's last values and rates.
 */
export class WatchSet {
  /** Rules that are evaluated with every report. */
  active: Watch[] = [];
  /** The others. */
  readonly quiet = new Set<WatchedRule>();
  readonly limits = new QuietLimits();
  readonly rates = new SharedRates();
  /** The shortest time without a report after which a quiet rule must be evaluated. */
  #absenceMs = Number.POSITIVE_INFINITY;

  /** All rules. */
  get rules(): WatchedRule[] {
    return [...this.active.map(({ rule }) => rule), ...this.quiet];
  }

  /** Replaces all rules. @param lastMs the time of the last report */
  reset(active: Watch[], quiet: Iterable<WatchedRule>, lastMs: number): void {
    this.active = active;
    this.quiet.clear();
    for (const rule of quiet) this.quiet.add(rule);
    this.limits.track(this.rules, lastMs);
    this.rates.track(this.rules);
    this.#limit();
  }

  /** Returns when a tick may change a state, in the time of the agent's samples. */
  dueMs(reportedMs: number): number {
    let dueMs = reportedMs + this.#absenceMs;
    for (const watch of this.active) if (watch.dueMs < dueMs) dueMs = watch.dueMs;
    return dueMs;
  }

  /** Takes the metrics of a report. Quiet rules that the report concerns become active, with their state before it. */
  take(lastMs: number, atMs: number, metrics: Readonly<Record<string, number>>): void {
    if (!this.limits.includes(metrics)) this.#wake(lastMs, (rule) => this.limits.isReached(rule, metrics));
    if (!this.rates.includes(atMs, metrics)) this.#wake(lastMs, (rule) => this.rates.isReached(rule, atMs, metrics));
    if (atMs - lastMs > this.#absenceMs) this.wakeAbsent(lastMs, atMs);
    this.limits.take(atMs, metrics);
    this.rates.take(atMs, metrics);
  }

  /** Makes quiet rules active for which the agent has not reported for long enough. */
  wakeAbsent(lastMs: number, atMs: number): void {
    this.#wake(lastMs, ({ absenceMs }) => atMs - lastMs >= absenceMs);
  }

  /** Lets rules rest that neither fire nor are about to. @param lastMs the time of the last report */
  settle(lastMs: number): void {
    const active = this.active.filter((watch) => {
      const canRest = this.#canRest(watch, lastMs);
      if (canRest) this.quiet.add(watch.rule);
      return !canRest;
    });
    if (active.length === this.active.length) return;
    this.active = active;
    this.#limit();
  }

  #wake(lastMs: number, isConcerned: (rule: WatchedRule) => boolean): void {
    const size = this.quiet.size;
    for (const rule of this.quiet) {
      if (!isConcerned(rule)) continue;
      this.quiet.delete(rule);
      this.active.push(newWatch(rule, this.#stateOf(rule, lastMs)));
    }
    if (this.quiet.size < size) this.#limit();
  }

  /** Returns the state of a quiet rule. */
  #stateOf(rule: WatchedRule, lastMs: number): RuleState {
    const values = rule.compiled.metrics.map((metric) => this.limits.valueOf(metric));
    const rates = rule.rates.length > 0 && { rates: this.rates.copyFor(rule) };
    return { atMs: lastMs, reportedMs: lastMs, values, ...rates, isFiring: false, sinceMs: null };
  }

  /** Returns whether `#stateOf` gives the state of a rule. */
  #canRest({ rule, state }: Watch, lastMs: number): boolean {
    if (rule.thresholds === undefined || state === undefined || state.isFiring || state.sinceMs !== null) return false;
    if (state.atMs !== lastMs || state.reportedMs !== lastMs) return false;
    const hasLastValues = rule.compiled.metrics.every((metric, i) => state.values[i] === this.limits.valueOf(metric));
    return hasLastValues && this.rates.isSame(rule, state.rates ?? []);
  }

  #limit(): void {
    this.limits.set(this.quiet);
    this.rates.set(this.quiet);
    this.#absenceMs = Number.POSITIVE_INFINITY;
    for (const { absenceMs } of this.quiet) if (absenceMs < this.#absenceMs) this.#absenceMs = absenceMs;
  }
}
