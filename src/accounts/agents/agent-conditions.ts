import { and, or, type SQL, sql } from "drizzle-orm";
import { type AgentScope, isUnlimited } from "../../auth/agent-scope.ts";
import type { LabelCondition, Selector } from "../../lib/selectors.ts";
import { agentLabels } from "../account-tables.ts";

/** Chooses agents: those that fulfil all given conditions. */
export interface AgentFilter {
  /** Only agents in this scope. */
  scope?: AgentScope | undefined;
  /** Only agents that this selector selects. */
  selector?: Selector | undefined;
  /** Only agents with these names. */
  apIds?: readonly string[] | undefined;
}

/** Returns a filter as a condition on the table `agents`. Must agree with `isInScope` and `matches`. */
export function isChosen({ scope = {}, selector = [], apIds }: AgentFilter): SQL {
  const conditions = [
    ...selector.map(toCondition),
    ...(isUnlimited(scope) ? [] : [isInScope(scope)]),
    ...(apIds === undefined ? [] : [isNamed(apIds)]),
  ];
  return and(...conditions) ?? sql`true`;
}

function isInScope({ selectors, ownerId, apIds }: AgentScope): SQL {
  const named = apIds === undefined ? sql`true` : isNamed(apIds);
  if (selectors === undefined) return named;
  const selected = selectors.map((selector) => and(sql`true`, ...selector.map(toCondition)));
  const owned = ownerId === undefined ? sql`false` : sql`owner_id = ${ownerId}`;
  return sql`(${or(owned, ...selected)}) and ${named}`;
}

/** Passes the names as one parameter: SQLite accepts at most 32,766. */
const isNamed = (apIds: readonly string[]): SQL =>
  sql`ap_id in (select value from json_each(${JSON.stringify(apIds)}))`;

/** The subquery reads the index by key and value once, for all agents. */
function toCondition({ key, values, negated }: LabelCondition): SQL {
  const operator = negated ? sql.raw("not in") : sql.raw("in");
  const found = values === undefined ? sql`true` : (or(...values.map(hasValue)) ?? sql`false`);
  return sql`ap_id ${operator} (select ap_id from ${agentLabels} where key = ${key} and (${found}))`;
}

function hasValue(pattern: string): SQL {
  if (!pattern.endsWith("*")) return sql`value = ${pattern}`;
  const prefix = pattern.slice(0, -1);
  // Values are ASCII: every continuation of the prefix sorts before this character. A range uses the index.
  return prefix === "" ? sql`true` : sql`value >= ${prefix} and value < ${`${prefix}\u{7f}`}`;
}
