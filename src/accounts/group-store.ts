import { asc, eq, inArray } from "drizzle-orm";
import type { ResolvedGrant } from "../auth/agent-scope.ts";
import { expandGroups, groupsIn, parseSelector, type Selector, type SelectorTerms } from "../lib/selectors.ts";
import { type Database, query } from "../storage/libsql.ts";
import { groups, type StoredGrant } from "./account-tables.ts";

/** A named selector. */
export interface GroupRow {
  name: string;
  selector: string;
  description: string;
}

/** Reads groups and replaces references to them. */
export interface GroupStore {
  find(name: string): Promise<GroupRow | undefined>;
  list(): Promise<GroupRow[]>;
  /** Replaces the references in a selector. Returns undefined if a group does not exist. Queries only if there are references. */
  expand(terms: SelectorTerms): Promise<Selector | undefined>;
  /** Like `expand`, for grants. A grant whose group does not exist grants nothing. */
  resolveGrants(stored: readonly StoredGrant[]): Promise<ResolvedGrant[]>;
}

const COLUMNS = { name: groups.name, selector: groups.selector, description: groups.description };

export function createGroupStore(database: Database): GroupStore {
  const selectorsOf = async (names: string[]): Promise<Map<string, Selector>> => {
    if (names.length === 0) return new Map();
    const rows = await query(database.select(COLUMNS).from(groups).where(inArray(groups.name, names)));
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

    async expand(terms) {
      return expandGroups(terms, await selectorsOf(groupsIn(terms)));
    },

    async resolveGrants(stored) {
      const parsed = stored.map(({ role, selector }) => ({ role, terms: parseSelector(selector) }));
      const found = await selectorsOf([...new Set(parsed.flatMap(({ terms }) => groupsIn(terms)))]);
      return parsed.flatMap(({ role, terms }) => {
        const selector = expandGroups(terms, found);
        return selector === undefined ? [] : [{ role, selector }];
      });
    },
  };
}
