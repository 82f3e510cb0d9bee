import type { AlertRow, AlertStore } from "../alerts/alert-store.ts";
import { isInScope, type ScopedAgent } from "../auth/agent-scope.ts";
import type { Actor } from "../auth/identity.ts";
import { agentScopeOf, authorize, visibleAgents } from "../auth/permissions.ts";
import type { Selectors } from "../fleet/selectors.ts";
import { NotAllowed, NotFound } from "../lib/errors.ts";
import { matches } from "../lib/selectors.ts";
import type { Alert, AlertsQuery } from "../schemas/alerts/alert.ts";

/** Alerts about the agents, and groups of agents, that the caller may see. */
export interface Alerts {
  /** Returns the alerts that fired last first. May return fewer than the limit if the caller sees few of many. */
  list(actor: Actor, query: AlertsQuery): Promise<Alert[]>;
  /** Records who takes care of an alert. The first one counts. */
  acknowledge(actor: Actor, id: string): Promise<Alert>;
}

const PAGE_SIZE = 1_000;
/** Alerts that one request examines. */
const MAX_EXAMINED = 20_000;

export function createAlerts(store: AlertStore, selectors: Selectors): Alerts {
  return {
    async list(actor, { state, severity, selector: terms, before, limit }) {
      authorize(actor, "alerts.list");
      const [selector, scope] = [await selectors.resolve(actor, terms), visibleAgents(actor)];
      const isWanted = (row: AlertRow): boolean => isInScope(scope, toScoped(row)) && matches(selector, labelsOf(row));
      const found: Alert[] = [];
      let last = before;
      for (let examined = 0; examined < MAX_EXAMINED; examined += PAGE_SIZE) {
        const rows = await store.list({ state, severity, before: last }, PAGE_SIZE);
        for (const row of rows) {
          if (isWanted(row)) found.push(toResponse(row));
          if (found.length === limit) return found;
        }
        last = rows.at(-1)?.id;
        if (rows.length < PAGE_SIZE) break;
      }
      return found;
    },

    async acknowledge(actor, id) {
      authorize(actor, "alerts.acknowledge");
      const row = await store.find(id);
      // An alert that the caller may not see looks the same as one that does not exist.
      if (row === undefined || !isInScope(visibleAgents(actor), toScoped(row))) throw new NotFound("Alert");
      if (!isInScope(agentScopeOf(actor, "alerts.acknowledge"), toScoped(row))) throw new NotAllowed();
      await store.acknowledge(row, actor);
      const changed = await store.find(id);
      if (changed === undefined) throw new NotFound("Alert");
      return toResponse(changed);
    },
  };
}

/** A group has no name that a scope could list, and no owner. */
const toScoped = ({ apId, labels, ownerId }: AlertRow): ScopedAgent => ({ apId: apId ?? "", labels, ownerId });

const labelsOf = ({ labels, ruleLabels }: AlertRow) => ({ ...ruleLabels, ...labels });

const toResponse = (row: AlertRow): Alert => ({
  id: row.id,
  rule_id: row.ruleId,
  rule: row.rule,
  severity: row.severity,
  state: row.resolvedAt === null ? "firing" : "resolved",
  ap_id: row.apId,
  group: row.groupValue,
  labels: labelsOf(row),
  text: row.text,
  value: row.value,
  fired_at: row.firedAt.toISOString(),
  resolved_at: row.resolvedAt?.toISOString() ?? null,
  acknowledged_at: row.acknowledgedAt?.toISOString() ?? null,
  acknowledged_by: row.acknowledgedBy,
  silenced: row.isSilenced && row.resolvedAt === null,
});
