import { type AgentScope, ALL_AGENTS, scopeOfGrants } from "../../auth/agent-scope.ts";
import type { Database } from "../../storage/libsql.ts";
import type { StoredGrant } from "../account-tables.ts";
import { createAppStore } from "../app-store.ts";
import { createGroupStore } from "../group-store.ts";
import { createUserStore } from "../user-store.ts";

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

  const scopeOf = async (id: string, grants: readonly StoredGrant[] | null): Promise<AgentScope> =>
    grants === null ? ALL_AGENTS : scopeOfGrants(await groups.resolveGrants(grants), "viewer", id);

  return async ({ kind, id, name }) => {
    if (kind === "app") {
      const app = await apps.find(name);
      if (app?.id !== id) return undefined;
      return { ...(await scopeOf(id, app.grants)), apIds: app.permissions.ap_ids };
    }
    const user = await users.find(name);
    if (user?.id !== id) return undefined;
    // Grants do not limit administrators.
    return user.roles.includes("admin") ? ALL_AGENTS : await scopeOf(id, user.grants);
  };
}
