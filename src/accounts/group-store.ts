import { and, asc, eq, inArray, ne, or, type SQL, sql } from "drizzle-orm";
import * as z from "zod";
import type { ResolvedGrant } from "../auth/agent-scope.ts";
import { Conflict } from "../lib/errors.ts";
import { expandGroups, groupsIn, parseSelector, type Selector, type SelectorTerms } from "../lib/selectors.ts";
import { MAX_GROUPS } from "../schemas/fleet/groups.ts";
import { type Database, query } from "../storage/libsql.ts";
import { apps, audit, groups, type StoredGrant, users } from "./account-tables.ts";
import { type AuditActor, actorText, auditIfChanged } from "./audit.ts";

/** A named selector. */
export interface GroupRow {
  name: string;
  selector: string;
  description: string;
}

/** Groups, and the selectors and grants that refer to them. */
export interface GroupStore {
  find(name: string): Promise<GroupRow | undefined>;
  list(): Promise<GroupRow[]>;
  /**
   * Creates or replaces a group. A new selector changes what the grants that refer to the group allow, so it invalidates the tokens of
   * their accounts, as a change of the grants does. Throws `Conflict` if there are too many groups.
   */
  save(group: GroupRow, by: AuditActor): Promise<void>;
  /** Returns whether it deleted the group. Does not delete a group that a grant refers to. */
  delete(name: string, by: AuditActor): Promise<boolean>;
  /** Returns the accounts with a grant that refers to the group, in the form of the audit trail. */
  accountsWith(name: string): Promise<string[]>;
  /** Returns the selectors of those groups that exist, by name. Queries only if there are names. */
  selectors(names: readonly string[]): Promise<Map<string, Selector>>;
  /** Replaces the references in a selector. Returns undefined if a group does not exist. Queries only if there are references. */
  expand(terms: SelectorTerms): Promise<Selector | undefined>;
  /** Like `expand`, for grants. A grant whose group does not exist grants nothing. */
  resolveGrants(stored: readonly StoredGrant[]): Promise<ResolvedGrant[]>;
}

const objectOf = (name: string): string => `group:${name}`;

/** The accounts that can have grants. */
const ACCOUNTS = {
  users: { table: users, object: sql`'user:' || username` },
  apps: { table: apps, object: sql`'app:' || app_name` },
};

/**
 * Whether a row of `users` or `apps` has a grant that refers to a group. Also true for a value of the same form in a list, such as
 * `owner in (a,@name)`, which no account's name has.
 */
export function refersTo(name: string): SQL {
  const blanks = [" ", "\t", "\r", "\n"];
  const selector = blanks.reduce((text, blank) => sql`replace(${text}, ${blank}, '')`, sql`value ->> '$.selector'`);
  return sql`exists (select 1 from json_each(grants) where instr(',' || ${selector} || ',', ${`,@${name},`}) > 0)`;
}

const Names = z.array(z.object({ object: z.string() }));

const COLUMNS = { name: groups.name, selector: groups.selector, description: groups.description };

export function createGroupStore(database: Database): GroupStore {
  const selectors: GroupStore["selectors"] = async (names) => {
    if (names.length === 0) return new Map();
    const rows = await query(
      database
        .select(COLUMNS)
        .from(groups)
        .where(inArray(groups.name, [...new Set(names)])),
    );
    // A group cannot refer to groups, so its terms are conditions.
    return new Map(rows.map(({ name, selector }) => [name, expandGroups(parseSelector(selector), new Map()) ?? []]));
  };

  return {
    async find(name) {
      return (await query(database.select(COLUMNS).from(groups).where(eq(groups.name, name))))[0];
    },

    async list() {
      return await query(database.select(COLUMNS).from(groups).orderBy(asc(groups.name)));
    },

    async save({ name, selector, description }, by) {
      const isGroup = eq(groups.name, name);
      const exists = sql`exists (select 1 from ${groups} where ${isGroup})`;
      const isNewSelector = sql`not exists (select 1 from ${groups} where ${isGroup} and selector = ${selector})
        and (${exists} or (select count(*) from ${groups}) < ${MAX_GROUPS})`;
      const invalidate = ({ table, object }: (typeof ACCOUNTS)[keyof typeof ACCOUNTS]) =>
        [
          database.run(
            sql`insert into ${audit} (at, request_id, actor, action, object, detail)
                select ${Date.now()}, ${by.requestId}, ${actorText(by)}, 'change grants', ${object},
                  ${JSON.stringify({ group: name, selector })}
                from ${table} where ${refersTo(name)} and ${isNewSelector}`,
          ),
          database.run(sql`update ${table} set version = version + 1 where ${refersTo(name)} and ${isNewSelector}`),
        ] as const;
      const detail = JSON.stringify({ selector, description });
      const updatedAt = new Date();
      const result = await query(
        database.batch([
          // The accounts come before the group: their statements read its old selector.
          ...invalidate(ACCOUNTS.users),
          ...invalidate(ACCOUNTS.apps),
          database
            .update(groups)
            .set({ selector, description, updatedAt })
            .where(and(isGroup, or(ne(groups.selector, selector), ne(groups.description, description)))),
          auditIfChanged(database, by, "change", objectOf(name), detail),
          database.run(
            sql`insert into ${groups} (name, selector, description, updated_at)
                select ${name}, ${selector}, ${description}, ${updatedAt.getTime()}
                where not ${exists} and (select count(*) from ${groups}) < ${MAX_GROUPS}`,
          ),
          auditIfChanged(database, by, "create", objectOf(name), detail),
          database.select(COLUMNS).from(groups).where(isGroup),
        ]),
      );
      if (result[8][0] === undefined) {
        throw new Conflict(`There are ${MAX_GROUPS.toLocaleString("en-US")} groups, which is the limit`);
      }
    },

    async delete(name, by) {
      const isUsed = sql`(exists (select 1 from ${users} where ${refersTo(name)}) or exists (select 1 from ${apps} where ${refersTo(name)}))`;
      const [deleted] = await query(
        database.batch([
          database
            .delete(groups)
            .where(and(eq(groups.name, name), sql`not ${isUsed}`))
            .returning({ name: groups.name }),
          auditIfChanged(database, by, "delete", objectOf(name)),
        ]),
      );
      return deleted.length > 0;
    },

    async accountsWith(name) {
      const of = ({ table, object }: (typeof ACCOUNTS)[keyof typeof ACCOUNTS]) =>
        sql`select ${object} as object from ${table} where ${refersTo(name)}`;
      const rows = await query(database.all(sql`${of(ACCOUNTS.users)} union all ${of(ACCOUNTS.apps)} order by object`));
      return Names.parse(rows).map(({ object }) => object);
    },

    selectors,

    async expand(terms) {
      return expandGroups(terms, await selectors(groupsIn(terms)));
    },

    async resolveGrants(stored) {
      const parsed = stored.map(({ role, selector }) => ({ role, terms: parseSelector(selector) }));
      const found = await selectors(parsed.flatMap(({ terms }) => groupsIn(terms)));
      return parsed.flatMap(({ role, terms }) => {
        const selector = expandGroups(terms, found);
        return selector === undefined ? [] : [{ role, selector }];
      });
    },
  };
}
