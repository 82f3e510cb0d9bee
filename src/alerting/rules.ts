import type { RuleRow, RuleStore } from "../alerts/rule-store.ts";
import type { Actor } from "../auth/identity.ts";
import { authorize } from "../auth/permissions.ts";
import type { Selectors } from "../fleet/selectors.ts";
import { NotFound } from "../lib/errors.ts";
import { parseSelector } from "../lib/selectors.ts";
import type { AlertRule, AlertRuleSave } from "../schemas/alerts/saved-rule.ts";

/** Alert rules. Administrators manage them, and everyone who may list agents reads them. */
export interface AlertRules {
  list(actor: Actor): Promise<AlertRule[]>;
  read(actor: Actor, id: string): Promise<AlertRule>;
  create(actor: Actor, rule: AlertRuleSave): Promise<AlertRule>;
  replace(actor: Actor, id: string, rule: AlertRuleSave): Promise<AlertRule>;
  delete(actor: Actor, id: string): Promise<void>;
}

export interface AlertRulesOptions {
  store: RuleStore;
  selectors: Selectors;
  /** Makes the shards load the rules. The next report is evaluated with them. */
  refreshShards(): Promise<void>;
}

export function createAlertRules({ store, selectors, refreshShards }: AlertRulesOptions): AlertRules {
  /** Throws `Invalid` if the rule refers to a group that does not exist. */
  const toChange = async (actor: Actor, { name, enabled, spec }: AlertRuleSave) => {
    const place = { place: "body", loc: ["spec", "selector"] } as const;
    await selectors.resolve(actor, parseSelector(spec.selector), place);
    return { name, isEnabled: enabled, spec };
  };

  return {
    async list(actor) {
      authorize(actor, "alert_rules.list");
      return (await store.list()).map(toResponse);
    },

    async read(actor, id) {
      authorize(actor, "alert_rules.read");
      return toResponse(found(await store.find(id)));
    },

    async create(actor, rule) {
      authorize(actor, "alert_rules.create");
      const row = await store.insert(await toChange(actor, rule), actor);
      await refreshShards();
      return toResponse(row);
    },

    async replace(actor, id, rule) {
      authorize(actor, "alert_rules.replace");
      const row = found(await store.update(id, await toChange(actor, rule), actor));
      await refreshShards();
      return toResponse(row);
    },

    async delete(actor, id) {
      authorize(actor, "alert_rules.delete");
      if (!(await store.delete(id, actor))) throw new NotFound("Alert rule");
      await refreshShards();
    },
  };
}

function found(row: RuleRow | undefined): RuleRow {
  if (row === undefined) throw new NotFound("Alert rule");
  return row;
}

const toResponse = ({ id, name, isEnabled, spec, version, createdBy, updatedAt }: RuleRow): AlertRule => ({
  id,
  name,
  enabled: isEnabled,
  spec,
  version,
  created_by: createdBy,
  updated_at: updatedAt.toISOString(),
});
