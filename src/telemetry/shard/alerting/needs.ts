import type { AgentEntry } from "./agent-entry.ts";
import { type BaselineNeed, hasAbsence } from "./watched-rule.ts";

/** What the evaluation needs from the telemetry store. */

/** Returns the agents that a rule about absence watches and that have not reported since the shard exists. */
export const unseenAgents = (entries: Iterable<AgentEntry>): string[] =>
  [...entries]
    .filter(({ tsMs, isSeeded, watches }) => tsMs === 0 && !isSeeded && watches.rules.some(hasAbsence))
    .map(({ apId }) => apId);

/** Returns the means of earlier days that rules compare with, and the agents that need them. */
export function baselineNeeds(entries: Iterable<AgentEntry>): (BaselineNeed & { apIds: string[] })[] {
  const needs = new Map<string, BaselineNeed & { apIds: string[] }>();
  for (const { apId, watches } of entries) {
    for (const { metric, days } of watches.rules.flatMap((rule) => rule.baselines)) {
      const key = `${days} ${metric}`;
      const need = needs.get(key) ?? { metric, days, apIds: [] };
      needs.set(key, need);
      if (need.apIds.at(-1) !== apId) need.apIds.push(apId);
    }
  }
  return [...needs.values()];
}
