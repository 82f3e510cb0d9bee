import { parseSelector, type SelectorTerms } from "../lib/selectors.ts";
import type { RuleSpec } from "../schemas/alerts/rule.ts";
import { type CompiledCondition, compileCondition, type Facts, Needs, toMs } from "./conditions.ts";
import { addToRate, newRate, type RateState } from "./rate.ts";

/**
 * Evaluates a rule for one agent, in the time of its samples. Live evaluation and backtests use it. Pure: the same observations give the
 * same transitions, at any speed and after any number of restarts.
 */

export interface CompiledRule {
  spec: RuleSpec;
  /** Chooses the agents. Groups in it are not expanded. */
  selector: SelectorTerms;
  /** The metrics that the conditions compare. */
  metrics: readonly string[];
  /** Whether a condition compares with the mean of earlier days, so that observations need `baseline`. */
  hasBaseline: boolean;
  condition: CompiledCondition;
  clearCondition: CompiledCondition | undefined;
  forMs: number;
  clearForMs: number;
  needs: Needs;
}

/** The state of a rule for one agent. Small, and JSON. It belongs to one version of the rule: a changed rule starts without a state. */
export interface RuleState {
  /** Time of the last evaluation. */
  atMs: number;
  /** Time of the last report. Null: none yet. */
  reportedMs: number | null;
  /** The last value of each metric of the rule, in its order. Null: never reported. */
  values: readonly (number | null)[];
  /** Absent if the rule has no rates of change. */
  rates?: readonly RateState[];
  /** The means of earlier days at the hour of the last values. Absent if the rule does not compare with them. */
  means?: readonly (number | null)[];
  isFiring: boolean;
  /** Since when the alert is about to fire, or to end if it fires. Null: it is not. */
  sinceMs: number | null;
}

export interface Observation {
  atMs: number;
  /** The metrics of a report. Absent in a tick: time passes, and the last values hold. */
  metrics?: Readonly<Record<string, number>> | undefined;
  /** Whether each of these metrics is newer than its own last value, although the report is not newer than the last one. */
  isPart?: boolean;
  /** For reports, if the rule has `hasBaseline`. */
  baseline?: BaselineLookup | undefined;
}

/**
 * Returns the mean of a metric at the same hour of the days before a time, or undefined if it is not known: see `baselineOf`. Must return the
 * same for the same arguments.
 */
export type BaselineLookup = (metric: string, days: number, atMs: number) => number | undefined;

export interface Transition {
  type: "fired" | "resolved";
  atMs: number;
  /** The value that explains it. Undefined if no metric of the rule has a value. */
  value: number | undefined;
}

export interface Step {
  state: RuleState;
  transitions: readonly Transition[];
  /** When the state may change without a report: call `step` with a tick at that time. Infinity if only a report can change it. */
  nextDueMs: number;
}

export function compileRule(spec: RuleSpec): CompiledRule {
  const needs = new Needs();
  const condition = compileCondition(spec.condition, needs);
  const clearCondition = spec.clear.condition && compileCondition(spec.clear.condition, needs);
  return {
    spec,
    selector: parseSelector(spec.selector),
    metrics: needs.metrics,
    hasBaseline: needs.means.length > 0,
    condition,
    clearCondition,
    forMs: toMs(spec.for_s),
    clearForMs: toMs(spec.clear.for_s),
    needs,
  };
}

const NO_TRANSITIONS: readonly Transition[] = [];

/**
 * Advances a rule by a report or a tick.
 *
 * First replays the ticks that were due before a report, so that reports alone give the same transitions as reports and ticks. A report
 * at the very time of a tick comes first: an agent that reports every 60 s is not absent for 60 s. A report that is not newer than the
 * last one changes nothing, unless it is a part: then its values count from now on. A report that is newer and older than a tick, because it
 * was under way for long, counts from that tick on.
 *
 * A tick advances the state to the last due time only, not to its own time. Due times are in the time of the agent's samples: if its
 * clock differs from that of the caller, the caller adds the difference.
 *
 * @param state undefined: nothing is known yet
 */
export function step(rule: CompiledRule, state: RuleState | undefined, observation: Observation): Step {
  const { atMs, metrics, isPart } = observation;
  if (state === undefined) {
    if (metrics === undefined)
      return { state: initialState(rule, atMs), transitions: NO_TRANSITIONS, nextDueMs: Infinity };
  } else if (metrics !== undefined && !isPart && state.reportedMs !== null && atMs <= state.reportedMs) {
    return { state, transitions: NO_TRANSITIONS, nextDueMs: nextDueMs(rule, state) };
  }
  const transitions: Transition[] = [];
  let current = state ?? initialState(rule, atMs);
  // Ends: evaluating at a due time removes it. An absence is due once, and the end of a duration is a transition or the duration starts anew.
  for (let dueMs = nextDueMs(rule, current); metrics === undefined ? dueMs <= atMs : dueMs < atMs; ) {
    current = evaluate(rule, { ...current, atMs: dueMs }, transitions);
    dueMs = nextDueMs(rule, current);
  }
  if (metrics !== undefined)
    current = evaluate(rule, withReport(rule, current, { ...observation, metrics }), transitions);
  return { state: current, transitions, nextDueMs: nextDueMs(rule, current) };
}

const initialState = ({ metrics, needs }: CompiledRule, atMs: number): RuleState => ({
  atMs,
  reportedMs: null,
  values: metrics.map(() => null),
  ...(needs.rates.length > 0 && { rates: needs.rates.map(newRate) }),
  ...(needs.means.length > 0 && { means: needs.means.map(() => null) }),
  isFiring: false,
  sinceMs: null,
});

/** Returns when the state may change without a report. */
export function nextDueMs({ needs, forMs, clearForMs }: CompiledRule, state: RuleState): number {
  const { atMs, reportedMs, sinceMs, isFiring } = state;
  let dueMs = sinceMs === null ? Infinity : sinceMs + (isFiring ? clearForMs : forMs);
  if (reportedMs !== null) {
    for (const absenceMs of needs.absencesMs) {
      const beginMs = reportedMs + absenceMs;
      if (beginMs > atMs && beginMs < dueMs) dueMs = beginMs;
    }
  }
  return dueMs;
}

function withReport(
  { metrics: names, needs }: CompiledRule,
  state: RuleState,
  { atMs, metrics, baseline }: Observation & { metrics: Readonly<Record<string, number>> },
): RuleState {
  const values = names.map((name, i) => reported(metrics, name) ?? state.values[i] ?? null);
  const reportedMs = Math.max(atMs, state.reportedMs ?? atMs);
  const next: RuleState = { ...state, atMs: Math.max(atMs, state.atMs), reportedMs, values };
  if (state.rates !== undefined) {
    next.rates = needs.rates.map(({ metric, overMs }, i) => {
      const rate = state.rates?.[i] ?? newRate();
      const value = reported(metrics, names[metric] ?? "");
      return value === undefined ? rate : addToRate(rate, overMs, atMs, value);
    });
  }
  if (state.means !== undefined) {
    next.means = needs.means.map(({ metric, days }, i) => {
      const name = names[metric] ?? "";
      return (reported(metrics, name) === undefined ? state.means?.[i] : baseline?.(name, days, atMs)) ?? null;
    });
  }
  return next;
}

/** Metrics come from JSON: a name may be that of an inherited property. */
function reported(metrics: Readonly<Record<string, number>>, name: string): number | undefined {
  const value: unknown = metrics[name];
  return typeof value === "number" ? value : undefined;
}

/** Evaluates the conditions at the time of the state. Appends at most one transition, and returns the new state. */
function evaluate(rule: CompiledRule, state: RuleState, transitions: Transition[]): RuleState {
  const { atMs, isFiring } = state;
  const facts: Facts = {
    atMs,
    reportedMs: state.reportedMs ?? undefined,
    values: state.values,
    rates: state.rates === undefined ? NONE : state.rates.map(({ perSecond }) => perSecond),
    means: state.means ?? NONE,
  };
  const holds = rule.condition.holds(facts);
  // An alert whose condition still holds does not end: it would fire again at once.
  const isLeaving = isFiring ? !holds && (rule.clearCondition?.holds(facts) ?? true) : holds;
  const sinceMs = isLeaving ? (state.sinceMs ?? atMs) : null;
  if (sinceMs === null || atMs - sinceMs < (isFiring ? rule.clearForMs : rule.forMs)) {
    return sinceMs === state.sinceMs ? state : { ...state, sinceMs };
  }
  transitions.push({ type: isFiring ? "resolved" : "fired", atMs, value: rule.condition.value(facts) });
  return { ...state, isFiring: !isFiring, sinceMs: null };
}

const NONE: readonly (number | null)[] = [];
