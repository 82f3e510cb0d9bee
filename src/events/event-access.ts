import { type AgentScope, isInScope, isUnlimited } from "../auth/agent-scope.ts";
import { matches, type Selector } from "../lib/selectors.ts";
import { SEVERITIES } from "../schemas/events.ts";
import type { SubscriptionFilter } from "../schemas/subscriptions.ts";
import type { LoggedEvent } from "./logged-events.ts";

/** What decides which events an account sees. */
export interface EventViewer {
  isAdmin: boolean;
  /** The agents that it sees. */
  scope: AgentScope;
  /** The account as the audit trail names it. */
  actors: readonly string[];
}

/**
 * An event about an agent is visible to accounts that see the agent, with its labels at that time. Other events are visible to
 * administrators and to the account that caused them, and an alert about a group to accounts whose grants select its labels.
 */
export function isVisible({ isAdmin, scope, actors }: EventViewer, { event, ownerId }: LoggedEvent): boolean {
  const { ap_id: apId, labels, actor, type } = event;
  if (apId !== null) return isInScope(scope, { apId, labels, ownerId });
  if (isAdmin || (actor !== null && actors.includes(actor))) return true;
  if (!type.startsWith("alert.")) return false;
  if (isUnlimited(scope)) return true;
  return scope.apIds === undefined && (scope.selectors ?? []).some((selector) => matches(selector, labels));
}

/** @param selector that of the filter, with the conditions of its groups */
export function isWanted(filter: SubscriptionFilter, selector: Selector, { event }: LoggedEvent): boolean {
  if (filter.types.length > 0 && !filter.types.includes(event.type)) return false;
  if (SEVERITIES.indexOf(event.severity) < SEVERITIES.indexOf(filter.severity)) return false;
  return matches(selector, event.labels);
}
