import type { AgentStore } from "../accounts/agents/agent-store.ts";
import type { ScopedAgent } from "../auth/agent-scope.ts";

/** Returns all agents with their labels, in the order of their names. The result may be a few seconds old. */
export type LabelledAgents = () => Promise<readonly ScopedAgent[]>;

/** Changes of labels and grants take effect within 5 s. */
const MAX_AGE_MS = 2_000;

/** Reads the agents at most once in two seconds, for any number of requests. */
export function createLabelledAgents(
  agents: Pick<AgentStore, "labelled">,
  now: () => number = Date.now,
): LabelledAgents {
  let last: { atMs: number; agents: readonly ScopedAgent[] } | undefined;
  // Does not share one promise between requests: the platform cancels it with the request that started it.
  return async () => {
    const atMs = now();
    if (last !== undefined && atMs - last.atMs < MAX_AGE_MS) return last.agents;
    const found = await agents.labelled();
    // A later query may have finished before a slow one.
    if (last === undefined || atMs > last.atMs) last = { atMs, agents: found };
    return found;
  };
}
