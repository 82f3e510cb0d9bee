import type { Facts } from "./conditions.ts";
import { type CompiledRule, nextDueMs, type RuleState } from "./evaluator.ts";
import { addInPlace, type MutableRate, rateWith } from "./rate.ts";

/** A state that its owner may change. */
type MutableState = { -readonly [K in keyof RuleState]: RuleState[K] };

/** Used for one call at a time. */
const values: (number | null)[] = [];
const rates: (number | null)[] = [];
const facts: { -readonly [K in keyof Facts]: Facts[K] } = {
  atMs: 0,
  reportedMs: undefined,
  values,
  rates,
  means: [],
};

/**
 * Advances a state by a report after which nothing fires and nothing is about to, as almost all reports are. Changes the state in place and
 * allocates next to nothing: with every report a shard calls it for each active rule. Returns false, and changes nothing, if `step` must
 * decide.
 */
export function takeQuietReport(
  rule: CompiledRule,
  state: RuleState,
  atMs: number,
  metrics: Readonly<Record<string, number>>,
): boolean {
  if (state.isFiring || state.sinceMs !== null || state.reportedMs === null || state.means !== undefined) return false;
  if (atMs <= state.reportedMs || atMs < state.atMs || nextDueMs(rule, state) < atMs) return false;
  const names = rule.metrics;
  for (let i = 0; i < names.length; i++) values[i] = reportedValue(rule, metrics, i) ?? state.values[i] ?? null;
  const sources = rule.needs.rates;
  for (let i = 0; i < sources.length; i++) {
    const source = sources[i];
    const rate = state.rates?.[i];
    if (source === undefined || rate === undefined) return false;
    const value = reportedValue(rule, metrics, source.metric);
    rates[i] = value === undefined ? rate.perSecond : rateWith(rate.points, source.overMs, atMs, value);
  }
  facts.atMs = atMs;
  facts.reportedMs = atMs;
  if (rule.condition.holds(facts)) return false;
  const own = state as MutableState;
  own.atMs = atMs;
  own.reportedMs = atMs;
  const kept = own.values as (number | null)[];
  for (let i = 0; i < names.length; i++) kept[i] = values[i] ?? null;
  for (let i = 0; i < sources.length; i++) {
    const source = sources[i];
    const rate = state.rates?.[i];
    const value = source && reportedValue(rule, metrics, source.metric);
    if (source !== undefined && rate !== undefined && value !== undefined)
      addInPlace(rate as MutableRate, source.overMs, atMs, value);
  }
  return true;
}

/** Returns the value of a metric of the rule, by its index. Undefined: the report does not have it. */
function reportedValue(
  { metrics: names }: CompiledRule,
  metrics: Readonly<Record<string, number>>,
  index: number,
): number | undefined {
  const value: unknown = metrics[names[index] ?? ""];
  return typeof value === "number" ? value : undefined;
}
