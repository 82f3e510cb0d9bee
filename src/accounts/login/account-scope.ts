import { type AgentScope, ALL_AGENTS, type GrantRole, scopeOfGrants } from "../../auth/agent-scope.ts";
import type { Database } from "../../storage/libsql.ts";
import type { StoredGrant } from "../account-tables.ts";
import { createAppStore } from "../app-store.ts";
import { createGroupStore, type GroupStore } from "../group-store.ts";
import { createUserStore } from "../user-store.ts";

/** What limits a user or an app to some agents. */
export interface Limits {
  id: string;
  grants: readonly StoredGrant[] | null;
  apIds?: readonly string[] | undefined;
}

/** Returns the agents for which an account has a role. Reads the groups that its grants name. */
export async function scopeOfLimits(
  groups: Pick<GroupStore, "resolveGrants">,
  { id, grants, apIds }: Limits,
  role: GrantRole,
): Promise<AgentScope> {
  const scope = grants === null ? ALL_AGENTS : scopeOfGrants(await groups.resolveGrants(grants), role, id);
  return { ...scope, apIds };
}

/** A user or an app. A later account of the same name has another id. */
export interface AccountRef {
  kind: "user" | "app";
  id: string;
  name: string;
}

/** Returns the agents that an account sees now, or undefined if it does not exist any more. */
export type CurrentScope = (account: AccountRef) => Promise<AgentScope | undefined>;

/** Reads the account and the groups of its grants each time, for work that outlives the request of the account. */
export function createCurrentScope(database: Database): CurrentScope {
  const users = createUserStore(database);
  const apps = createAppStore(database);
  const groups = createGroupStore(database);

  return async ({ kind, id, name }) => {
    if (kind === "app") {
      const app = await apps.find(name);
      if (app?.id !== id) return undefined;
      return await scopeOfLimits(groups, { ...app, apIds: app.permissions.ap_ids }, "viewer");
    }
    const user = await users.find(name);
    if (user?.id !== id) return undefined;
    // Grants do not limit administrators.
    return user.roles.includes("admin") ? ALL_AGENTS : await scopeOfLimits(groups, user, "viewer");
  };
}
