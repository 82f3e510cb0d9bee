import { type Labels, matches, type Selector } from "../lib/selectors.ts";

/** What a grant allows: a viewer reads, an operator also sends commands, a manager also creates, labels, updates and deletes agents. */
export const GRANT_ROLES = ["viewer", "operator", "manager"] as const;
export type GrantRole = (typeof GRANT_ROLES)[number];

/** A role for the agents that a selector selects. */
export interface ResolvedGrant {
  role: GrantRole;
  selector: Selector;
}

/** Some of the agents: those that one of the selectors selects, and those that the owner emulates. */
export interface AgentScope {
  /** Undefined: all agents. */
  selectors?: readonly Selector[] | undefined;
  /** Id of an account. The agents that it emulates are in its scope. */
  ownerId?: string | undefined;
  /** If given, only these agents, in addition to the other conditions. */
  apIds?: readonly string[] | undefined;
}

/** An agent with what scopes depend on. */
export interface ScopedAgent {
  apId: string;
  labels: Labels;
  /** Id of the account that emulates the agent. */
  ownerId: string | null;
}

export const ALL_AGENTS: AgentScope = {};

export const isUnlimited = ({ selectors, apIds }: AgentScope): boolean =>
  selectors === undefined && apIds === undefined;

export function isInScope({ selectors, ownerId, apIds }: AgentScope, agent: ScopedAgent): boolean {
  if (apIds !== undefined && !apIds.includes(agent.apId)) return false;
  if (selectors === undefined || (ownerId !== undefined && agent.ownerId === ownerId)) return true;
  return selectors.some((selector) => matches(selector, agent.labels));
}

/** Like `isInScope`, for many agents. */
export function scopeFilter({ apIds, ...others }: AgentScope): (agent: ScopedAgent) => boolean {
  const names = apIds && new Set(apIds);
  return (agent) => (names?.has(agent.apId) ?? true) && isInScope(others, agent);
}

/** Returns the scope of the grants with at least this role. Accounts operate the agents that they emulate. */
export function scopeOfGrants(grants: readonly ResolvedGrant[], role: GrantRole, ownerId: string): AgentScope {
  const minimum = GRANT_ROLES.indexOf(role);
  const selectors = grants
    .filter((grant) => GRANT_ROLES.indexOf(grant.role) >= minimum)
    .map(({ selector }) => selector);
  // A selector without conditions selects every agent.
  if (selectors.some(({ length }) => length === 0)) return ALL_AGENTS;
  return { selectors, ownerId: role === "manager" ? undefined : ownerId };
}
