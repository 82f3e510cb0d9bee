import type { AgentFilter } from "../accounts/agent-conditions.ts";
import type { JobRechecks } from "../accounts/owned-jobs.ts";
import { type AgentScope, isInScope } from "../auth/agent-scope.ts";
import type { Actor } from "../auth/identity.ts";
import { type Action, agentScopeOf, visibleAgents } from "../auth/permissions.ts";
import { Conflict } from "../lib/errors.ts";
import type { Labels } from "../lib/selectors.ts";
import { type LabelChanges, MAX_LABELLED_AGENTS, MAX_LABELS } from "../schemas/labels.ts";
import { type LabelAudit, type LabelPatches, type LabelPreview, type LabelStore, StoredLabels } from "./label-store.ts";

/** A change of the labels of one or many agents. */
export interface LabelChange {
  action: Action;
  filter: Omit<AgentFilter, "scope">;
  patches: LabelPatches;
  isDryRun?: boolean;
  /** Throws if one of the agents must not change. Agents that the caller does not see are not among them. */
  check(agents: readonly CheckedAgent[]): void;
  /** Returns the object and the detail of the entry in the audit trail. */
  audit(changed: number): Omit<LabelAudit, "by">;
}

/**
 * `outside`: the caller may not change the agent. `moved`: its grants would not include the changed agent. `full`: the agent would have
 * too many labels.
 */
export type Problem = "outside" | "moved" | "full";

export interface CheckedAgent {
  apId: string;
  problem: Problem | undefined;
}

export type ApplyLabels = (actor: Actor, change: LabelChange) => Promise<{ agents: number; changed: number }>;

const MAX_ATTEMPTS = 5;

/**
 * Returns a function that checks a change and applies it, or throws. It decides with the labels that it has read. The store applies the
 * change only if they are still the same, so that no concurrent change can move an agent into or out of the caller's grants.
 */
export function createApplyLabels(store: Pick<LabelStore, "preview" | "apply">, rechecks: JobRechecks): ApplyLabels {
  return async (actor, { action, filter, patches, isDryRun = false, check, audit }) => {
    const scope = agentScopeOf(actor, action);
    const keys = [...new Set([...(scope.selectors ?? []).flat(), ...(filter.selector ?? [])].map(({ key }) => key))];
    const visible = { ...filter, scope: visibleAgents(actor) };
    for (let attempt = 0; attempt < MAX_ATTEMPTS; attempt++) {
      // One more than allowed, so that the check sees that there are too many.
      const agents = await store.preview(visible, patches, keys, MAX_LABELLED_AGENTS + 1);
      check(agents.map((agent) => ({ apId: agent.apId, problem: problemOf(agent, patches, scope) })));
      const changed = agents.filter(({ isChanged }) => isChanged);
      const entry = { by: actor, ...audit(changed.length) };
      const counts = { agents: agents.length, changed: changed.length };
      if (isDryRun || changed.length === 0) return counts;
      if (await store.apply(changed, patches, keys, entry)) {
        rechecks.recheckJobsOf({ apIds: changed.map(({ apId }) => apId) });
        return counts;
      }
    }
    throw new Conflict("Other requests keep changing these labels");
  };
}

function problemOf(
  { apId, labelsText, isChanged, size }: LabelPreview,
  patches: LabelPatches,
  scope: AgentScope,
): Problem | undefined {
  const labels = StoredLabels.parse(JSON.parse(labelsText));
  // A manager's scope does not depend on the owner.
  const isIncluded = (labels: Labels) => isInScope(scope, { apId, labels, ownerId: null });
  if (!isIncluded(labels)) return "outside";
  const changes = "all" in patches ? patches.all : patches.byName.get(apId);
  if (!isIncluded(withChanges(labels, changes ?? {}))) return "moved";
  return isChanged && size > MAX_LABELS ? "full" : undefined;
}

const withChanges = (labels: Labels, changes: LabelChanges): Labels =>
  Object.fromEntries(
    Object.entries({ ...labels, ...changes }).filter((entry): entry is [string, string] => entry[1] !== null),
  );
