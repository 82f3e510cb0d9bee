import { type CompiledRule, type Observation, type RuleState, step } from "../rules/evaluator.ts";
import { type LeafRule, leafMetric, leafValue } from "../rules/leaves.ts";
import type { AgentChanges } from "../telemetry/store/rule-changes.ts";

/** Evaluates a rule for one agent over a past period, with the evaluator of live data. */

export interface ReplayedAlert {
  firedMs: number;
  /** Null: it fires at the end of the period. */
  resolvedMs: number | null;
  /** The value that made it fire. */
  value: number | undefined;
}

export class Replay {
  readonly alerts: ReplayedAlert[] = [];
  readonly #rule: CompiledRule;
  #state: RuleState | undefined;

  constructor(rule: CompiledRule) {
    this.#rule = rule;
  }

  observe(observation: Observation): void {
    const { state, transitions } = step(this.#rule, this.#state, observation);
    this.#state = state;
    for (const { type, atMs, value } of transitions) {
      if (type === "fired") this.alerts.push({ firedMs: atMs, resolvedMs: null, value });
      else this.#end(atMs);
    }
  }

  /** Says that the agent has also reported until a time, without values that matter. */
  reportedUntil(atMs: number): void {
    if (this.#state !== undefined && atMs > (this.#state.reportedMs ?? -Infinity))
      this.#state = { ...this.#state, reportedMs: atMs };
  }

  #end(atMs: number): void {
    const last = this.alerts.at(-1);
    if (last !== undefined) last.resolvedMs = atMs;
  }
}

/** Evaluates a rule from the changes of its comparisons. The values of its alerts name the comparison that explains them. */
export function replayChanges({ rule }: LeafRule, agent: AgentChanges, toMs: number): ReplayedAlert[] {
  const replay = new Replay(rule);
  const { periods, completeUntilMs = toMs } = agent;
  const observations = new Map<number, Record<string, number>>(periods.map(({ fromMs }) => [fromMs, {}]));
  for (const { leaves, changes } of agent.metrics) {
    for (const { atMs, results } of changes) {
      const metrics = observations.get(atMs) ?? {};
      for (const [bit, leaf] of leaves.entries())
        metrics[leafMetric(leaf)] = leafValue(leaf, Math.floor(results / 2 ** bit) % 2 === 1);
      observations.set(atMs, metrics);
    }
  }
  let period = 0;
  for (const atMs of [...observations.keys()].toSorted((a, b) => a - b)) {
    if (atMs > completeUntilMs) break;
    while (atMs >= (periods[period + 1]?.fromMs ?? Infinity)) period++;
    // A period begins after a pause. Within it, the agent has just reported.
    const isFirst = atMs === periods[period]?.fromMs;
    if (periods.length > 0) replay.reportedUntil(isFirst ? (periods[period - 1]?.toMs ?? -Infinity) : atMs - 1);
    replay.observe({ atMs, metrics: observations.get(atMs) });
  }
  const last = periods.findLast(({ fromMs }) => fromMs <= completeUntilMs);
  if (last !== undefined) replay.reportedUntil(Math.min(last.toMs, completeUntilMs));
  replay.observe({ atMs: completeUntilMs });
  return replay.alerts;
}
