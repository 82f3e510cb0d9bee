import { type AgentScope, isInScope } from "../auth/agent-scope.ts";
import { matches, type Selector } from "../lib/selectors.ts";
import { type EventType, SEVERITIES, type Severity } from "../schemas/events.ts";
import type { EventRow } from "./event-log.ts";

/** An account that reads events. */
export interface EventViewer {
  /** Whether the account sees the events that are about no agent. */
  seesAll: boolean;
  id: string;
  /** The agents that it sees. */
  scope: AgentScope;
}

/** Returns whether an account sees an event. An alert about a group of agents has no agent, and the label of the group. */
export function isVisible({ seesAll, id, scope }: EventViewer, { type, apId, labels, ownerId }: EventRow): boolean {
  if (apId !== null) return isInScope(scope, { apId, labels, ownerId });
  if (seesAll || ownerId === id) return true;
  if (!type.startsWith("alert.") || Object.keys(labels).length === 0 || scope.apIds !== undefined) return false;
  return scope.selectors === undefined || scope.selectors.some((selector) => matches(selector, labels));
}

export interface EventFilter {
  /** Undefined: all types. */
  types?: readonly EventType[] | undefined;
  /** Empty: all events. Otherwise only events with labels: about an agent, or an alert. */
  selector: Selector;
  severity: Severity;
}

export function matchesFilter({ types, selector, severity }: EventFilter, event: EventRow): boolean {
  if (types !== undefined && !types.includes(event.type)) return false;
  if (SEVERITIES.indexOf(event.severity) < SEVERITIES.indexOf(severity)) return false;
  return isSelected(selector, event);
}

export const isSelected = (selector: Selector, { labels }: Pick<EventRow, "labels">): boolean =>
  selector.length === 0 || (Object.keys(labels).length > 0 && matches(selector, labels));
