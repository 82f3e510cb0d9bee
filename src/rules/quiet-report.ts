import type { Facts } from "./conditions.ts";
import { type CompiledRule, nextDueMs, type RuleState } from "./evaluator.ts";

/** A state that its owner may change. */
type MutableState = { -readonly [K in keyof RuleState]: RuleState[K] };

/** Used for one call at a time. */
const values: (number | null)[] = [];
const facts: { -readonly [K in keyof Facts]: Facts[K] } = {
  atMs: 0,
  reportedMs: undefined,
  values,
  rates: [],
  means: [],
};

/**
 * Advances a state by a report after which nothing fires and nothing is about to, as almost all reports are. Changes the state in place and
 * allocates nothing: with every report a shard calls it for each active rule. Returns false, and changes nothing, if `step` must decide.
 */
export function takeQuietReport(
  rule: CompiledRule,
  state: RuleState,
  atMs: number,
  metrics: Readonly<Record<string, number>>,
): boolean {
  if (state.isFiring || state.sinceMs !== null || state.reportedMs === null) return false;
  if (state.rates !== undefined || state.means !== undefined) return false;
  if (atMs <= state.reportedMs || atMs < state.atMs || nextDueMs(rule, state) < atMs) return false;
  const names = rule.metrics;
  for (let i = 0; i < names.length; i++) {
    const value: unknown = metrics[names[i] ?? ""];
    values[i] = typeof value === "number" ? value : (state.values[i] ?? null);
  }
  facts.atMs = atMs;
  facts.reportedMs = atMs;
  if (rule.condition.holds(facts)) return false;
  const own = state as MutableState;
  own.atMs = atMs;
  own.reportedMs = atMs;
  const kept = own.values as (number | null)[];
  for (let i = 0; i < names.length; i++) kept[i] = values[i] ?? null;
  return true;
}
