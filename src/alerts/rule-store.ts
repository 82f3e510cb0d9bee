import { asc, eq, sql } from "drizzle-orm";
import * as z from "zod";
import { type AuditActor, actorText, auditIfChanged } from "../accounts/audit.ts";
import type { GroupStore } from "../accounts/group-store.ts";
import { Conflict, Duplicate } from "../lib/errors.ts";
import { expandGroups, groupsIn, parseSelector, type Selector } from "../lib/selectors.ts";
import { RuleSpec } from "../schemas/alerts/rule.ts";
import { MAX_RULES } from "../schemas/alerts/saved-rule.ts";
import { type Database, isUniqueViolation, query } from "../storage/libsql.ts";
import { alertRules } from "./alert-tables.ts";

const RuleRow = z.object({
  id: z.string(),
  name: z.string(),
  spec: RuleSpec,
  isEnabled: z.boolean(),
  version: z.int(),
  createdBy: z.string(),
  updatedAt: z.date(),
});
export type RuleRow = z.output<typeof RuleRow>;
export type RuleChange = Pick<RuleRow, "name" | "spec" | "isEnabled">;

/** A rule that shards evaluate. */
export interface EnabledRule {
  id: string;
  name: string;
  spec: RuleSpec;
  /** The rule's selector without references to groups. */
  selector: Selector;
}

/** Alert rules. */
export interface RuleStore {
  /** Returns all rules, ordered by name. */
  list(): Promise<RuleRow[]>;
  find(id: string): Promise<RuleRow | undefined>;
  /** Throws `Duplicate` if the name is taken, `Conflict` if there are too many rules. */
  insert(rule: RuleChange, by: AuditActor): Promise<RuleRow>;
  /** Returns undefined if there is no such rule. Throws `Duplicate` if the name is taken. */
  update(id: string, rule: RuleChange, by: AuditActor): Promise<RuleRow | undefined>;
  /** Returns whether it deleted the rule. */
  delete(id: string, by: AuditActor): Promise<boolean>;
  /** Returns the rules that shards evaluate. Omits those that refer to a group that does not exist. */
  enabledRules(): Promise<EnabledRule[]>;
}

/** The first part of the objects that the audit trail names. */
export const RULE_OBJECT = "alert_rule:";
const objectOf = (name: string): string => `${RULE_OBJECT}${name}`;
const detailOf = ({ spec, isEnabled }: RuleChange): string => JSON.stringify({ enabled: isEnabled, spec });

export function createRuleStore(database: Database, groups: Pick<GroupStore, "selectors">): RuleStore {
  return {
    async list() {
      return z.array(RuleRow).parse(await query(database.select().from(alertRules).orderBy(asc(alertRules.name))));
    },

    async find(id) {
      const [row] = await query(database.select().from(alertRules).where(eq(alertRules.id, id)));
      return row === undefined ? undefined : RuleRow.parse(row);
    },

    async insert(rule, by) {
      const row = { id: crypto.randomUUID(), version: 1, createdBy: actorText(by), updatedAt: new Date(), ...rule };
      const [inserted] = await unlessTaken(
        database.batch([
          database.run(
            sql`insert into ${alertRules} (id, name, spec, is_enabled, version, created_by, updated_at)
                select ${row.id}, ${row.name}, ${JSON.stringify(row.spec)}, ${Number(row.isEnabled)}, ${row.version},
                  ${row.createdBy}, ${row.updatedAt.getTime()}
                where (select count(*) from ${alertRules}) < ${MAX_RULES}`,
          ),
          auditIfChanged(database, by, "create", objectOf(row.name), detailOf(row)),
        ]),
      );
      if (inserted.rowsAffected === 0) throw new Conflict(`There are ${MAX_RULES} alert rules, which is the limit`);
      return row;
    },

    async update(id, rule, by) {
      const [rows] = await unlessTaken(
        database.batch([
          database
            .update(alertRules)
            .set({ ...rule, version: sql`${alertRules.version} + 1`, updatedAt: new Date() })
            .where(eq(alertRules.id, id))
            .returning(),
          auditIfChanged(database, by, "change", objectOf(rule.name), detailOf(rule)),
        ]),
      );
      return rows[0] === undefined ? undefined : RuleRow.parse(rows[0]);
    },

    async delete(id, by) {
      const name = sql`(select name from ${alertRules} where id = ${id})`;
      // The entry precedes the deletion, because it needs the name.
      const [, deleted] = await query(
        database.batch([
          database.run(
            sql`insert into audit (at, request_id, actor, action, object)
                select ${Date.now()}, ${by.requestId}, ${actorText(by)}, 'delete', ${RULE_OBJECT} || ${name}
                where ${name} is not null`,
          ),
          database.delete(alertRules).where(eq(alertRules.id, id)).returning({ id: alertRules.id }),
        ]),
      );
      return deleted.length > 0;
    },

    async enabledRules() {
      const rows = await query(
        database.select().from(alertRules).where(eq(alertRules.isEnabled, true)).orderBy(asc(alertRules.id)),
      );
      const rules = z.array(RuleRow).parse(rows);
      const parsed = rules.map(({ id, name, spec }) => ({ id, name, spec, terms: parseSelector(spec.selector) }));
      const known = await groups.selectors(parsed.flatMap(({ terms }) => groupsIn(terms)));
      return parsed.flatMap(({ terms, ...rule }) => {
        const selector = expandGroups(terms, known);
        return selector === undefined ? [] : [{ ...rule, selector }];
      });
    },
  };
}

/** Runs statements. Throws `Duplicate` if the name of a rule is taken. */
async function unlessTaken<T>(statements: PromiseLike<T>): Promise<T> {
  try {
    return await query(statements);
  } catch (error) {
    throw isUniqueViolation(error) ? new Duplicate("Alert rule") : error;
  }
}
