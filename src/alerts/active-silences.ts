import { inArray } from "drizzle-orm";
import * as z from "zod";
import { apps, StoredGrants, users } from "../accounts/account-tables.ts";
import type { GroupStore } from "../accounts/group-store.ts";
import { type AgentScope, ALL_AGENTS, isInScope, scopeOfGrants } from "../auth/agent-scope.ts";
import { type Labels, matches, parseSelector, type Selector } from "../lib/selectors.ts";
import { Permissions } from "../schemas/accounts/app.ts";
import { type Database, query } from "../storage/libsql.ts";
import type { SilenceStore } from "./silence-store.ts";

/** What silences depend on. */
export interface SilencedAlert {
  ruleId: string;
  /** Null for an alert about a group. */
  apId: string | null;
  /** The labels of the agent or of the group. */
  labels: Labels;
  ruleLabels: Labels;
  ownerId: string | null;
}

/** The silences that have not ended, with the scopes that their authors have now. */
export interface ActiveSilences {
  matches(alert: SilencedAlert): boolean;
  /** When the first of them ends. Undefined if there are none. */
  nextEndMs: number | undefined;
}

const Authors = z.object({
  users: z.array(z.object({ id: z.string(), isAdmin: z.boolean().nullable(), grants: StoredGrants })),
  apps: z.array(z.object({ id: z.string(), permissions: Permissions, grants: StoredGrants })),
});

/** Loads the active silences. A silence holds back nothing that its author may not operate, and nothing if the author was deleted. */
export function createSilenceReader(
  database: Database,
  silences: Pick<SilenceStore, "active">,
  groups: Pick<GroupStore, "expand" | "resolveGrants">,
): (nowMs: number) => Promise<ActiveSilences> {
  const scopesOf = async (ids: string[]): Promise<Map<string, AgentScope>> => {
    const [foundUsers, foundApps] = await query(
      database.batch([
        database
          .select({ id: users.id, isAdmin: users.isAdmin, grants: users.grants })
          .from(users)
          .where(inArray(users.id, ids)),
        database
          .select({ id: apps.id, permissions: apps.permissions, grants: apps.grants })
          .from(apps)
          .where(inArray(apps.id, ids)),
      ]),
    );
    const authors = Authors.parse({ users: foundUsers, apps: foundApps });
    const scopes = new Map<string, AgentScope>();
    const scopeOf = async (id: string, grants: z.output<typeof StoredGrants>): Promise<AgentScope> =>
      grants === null ? ALL_AGENTS : scopeOfGrants(await groups.resolveGrants(grants), "operator", id);
    for (const { id, isAdmin, grants } of authors.users)
      scopes.set(id, isAdmin === true ? ALL_AGENTS : await scopeOf(id, grants));
    for (const { id, permissions, grants } of authors.apps)
      scopes.set(id, { ...(await scopeOf(id, grants)), apIds: permissions.ap_ids });
    return scopes;
  };

  return async (nowMs) => {
    const active = await silences.active(nowMs);
    if (active.length === 0) return { matches: () => false, nextEndMs: undefined };
    const scopes = await scopesOf([...new Set(active.map(({ authorId }) => authorId))]);
    const resolved: { selector: Selector; scope: AgentScope }[] = [];
    for (const { selector: text, authorId } of active) {
      const scope = scopes.get(authorId);
      const selector = scope && (await groups.expand(parseSelector(text)));
      if (selector !== undefined && scope !== undefined) resolved.push({ selector, scope });
    }
    return {
      matches: ({ ruleId, apId, labels, ruleLabels, ownerId }) => {
        // A silence may be about one agent, or one rule.
        const selected = { ...ruleLabels, ...labels, rule_id: ruleId, ...(apId !== null && { ap_id: apId }) };
        return resolved.some(
          ({ selector, scope }) =>
            isInScope(scope, { apId: apId ?? "", labels, ownerId }) && matches(selector, selected),
        );
      },
      nextEndMs: Math.min(...active.map(({ until }) => until.getTime())),
    };
  };
}
