import type { Condition, SimpleCondition } from "../schemas/alerts/rule.ts";

/** Compiles the conditions of rules to functions. */

type Operator = ">" | ">=" | "<" | "<=";

/** What conditions depend on, at one time. */
export interface Facts {
  atMs: number;
  /** Time of the last report. */
  reportedMs: number | undefined;
  /** The last value of each metric of the rule. Null: never reported. */
  values: readonly (number | null)[];
  /** The change per second of each rate of the rule. Null: not known yet. */
  rates: readonly (number | null)[];
  /** For each comparison with earlier days, the mean at the hour of the last value. Null: not known. */
  means: readonly (number | null)[];
}

export interface CompiledCondition {
  holds(facts: Facts): boolean;
  /** Returns the value that explains the condition: of the first inner condition that holds, or else of the first that has a value. */
  value(facts: Facts): number | undefined;
}

/** A rate of change that a rule needs. */
export interface RateSource {
  /** Index of the metric in the rule's list. */
  metric: number;
  overMs: number;
}

/** A mean of earlier days that a rule needs. */
export interface MeanSource {
  /** Index of the metric in the rule's list. */
  metric: number;
  days: number;
}

/** Collects what the conditions of a rule need. Conditions refer to it by index. */
export class Needs {
  readonly metrics: string[] = [];
  readonly rates: RateSource[] = [];
  /** Times without a report after which a condition holds. */
  readonly absencesMs: number[] = [];
  readonly means: MeanSource[] = [];

  metric(name: string): number {
    const index = this.metrics.indexOf(name);
    return index >= 0 ? index : this.metrics.push(name) - 1;
  }

  rate(name: string, overMs: number): number {
    const metric = this.metric(name);
    const index = this.rates.findIndex((rate) => rate.metric === metric && rate.overMs === overMs);
    return index >= 0 ? index : this.rates.push({ metric, overMs }) - 1;
  }

  mean(name: string, days: number): number {
    const metric = this.metric(name);
    const index = this.means.findIndex((mean) => mean.metric === metric && mean.days === days);
    return index >= 0 ? index : this.means.push({ metric, days }) - 1;
  }

  absence(ms: number): void {
    if (!this.absencesMs.includes(ms)) this.absencesMs.push(ms);
  }
}

const COMPARE: Record<Operator, (value: number, limit: number) => boolean> = {
  ">": (value, limit) => value > limit,
  ">=": (value, limit) => value >= limit,
  "<": (value, limit) => value < limit,
  "<=": (value, limit) => value <= limit,
};

/** Whole milliseconds, as in samples: sums and differences of times are then exact. */
export const toMs = (seconds: number): number => Math.round(seconds * 1000);

/** Compiles a condition and adds what it needs. A condition about a value that is not known does not hold. */
export function compileCondition(condition: Condition, needs: Needs): CompiledCondition {
  if ("any" in condition || "all" in condition) {
    const isAny = "any" in condition;
    const inner = (isAny ? condition.any : condition.all).map((one) => compileCondition(one, needs));
    return {
      holds: isAny
        ? (facts) => inner.some((one) => one.holds(facts))
        : (facts) => inner.every((one) => one.holds(facts)),
      value: (facts) => {
        const holding = inner.find((one) => one.holds(facts))?.value(facts);
        if (holding !== undefined) return holding;
        for (const one of inner) {
          const value = one.value(facts);
          if (value !== undefined) return value;
        }
        return undefined;
      },
    };
  }
  return compileSimple(condition, needs);
}

function compileSimple(condition: SimpleCondition, needs: Needs): CompiledCondition {
  if ("no_report_s" in condition) {
    const absenceMs = toMs(condition.no_report_s);
    needs.absence(absenceMs);
    return {
      holds: ({ atMs, reportedMs }) => reportedMs !== undefined && atMs - reportedMs >= absenceMs,
      value: ({ atMs, reportedMs }) => (reportedMs === undefined ? undefined : (atMs - reportedMs) / 1000),
    };
  }
  const compare = COMPARE[condition.op];
  if ("rate_of" in condition) {
    const index = needs.rate(condition.rate_of, toMs(condition.over_s));
    const limit = condition.value;
    return {
      holds: ({ rates }) => {
        const rate = rates[index] ?? null;
        return rate !== null && compare(rate, limit);
      },
      value: ({ rates }) => rates[index] ?? undefined,
    };
  }
  const { metric } = condition;
  const index = needs.metric(metric);
  const value = ({ values }: Facts): number | undefined => values[index] ?? undefined;
  if ("baseline" in condition) {
    const { days, factor } = condition.baseline;
    const mean = needs.mean(metric, days);
    return {
      holds: ({ values, means }) => {
        const [current, usual] = [values[index] ?? null, means[mean] ?? null];
        return current !== null && usual !== null && compare(current, usual * factor);
      },
      value,
    };
  }
  const limit = condition.value;
  return {
    holds: ({ values }) => {
      const current = values[index] ?? null;
      return current !== null && compare(current, limit);
    },
    value,
  };
}
