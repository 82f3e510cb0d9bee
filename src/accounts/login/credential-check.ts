import { ALL_AGENTS, type GrantRole, isInScope, isUnlimited, scopeOfGrants } from "../../auth/agent-scope.ts";
import type { Database } from "../../storage/libsql.ts";
import type { StoredGrant } from "../account-tables.ts";
import { createAgentStore } from "../agent-store.ts";
import { createAppStore } from "../app-store.ts";
import { createGroupStore } from "../group-store.ts";
import { createUserStore } from "../user-store.ts";

/** An account, and its version when a token or connection was issued. */
export interface CredentialRef {
  kind: "admin" | "user" | "agent" | "app";
  /** Username, ap_id or app_name. */
  name: string;
  version: number;
  /** An agent, and the role that the account needs for it. */
  target?: { apId: string; role: GrantRole } | undefined;
}

/** Returns whether a credential is still valid, also for its target. Responds or throws within two seconds. */
export type IsCredentialCurrent = (credential: CredentialRef) => Promise<boolean>;

/** What limits a user or an app to some agents. */
interface Limits {
  id: string;
  grants: StoredGrant[] | null;
  apIds?: readonly string[] | undefined;
}

/**
 * Compares versions: a new password, other grants or permissions and a deletion all change the version of an account. The agents in its
 * scope also depend on their labels and on groups, which do not change the version. So the scope is read again for each check.
 */
export function createCredentialCheck(database: Database): IsCredentialCurrent {
  const users = createUserStore(database);
  const apps = createAppStore(database);
  const agents = createAgentStore(database);
  const groups = createGroupStore(database);

  const hasRole = async ({ id, grants, apIds }: Limits, target: CredentialRef["target"]): Promise<boolean> => {
    if (target === undefined || (grants === null && apIds === undefined)) return true;
    const [resolved, agent] = await Promise.all([groups.resolveGrants(grants ?? []), agents.find(target.apId)]);
    const scope = { ...(grants === null ? ALL_AGENTS : scopeOfGrants(resolved, target.role, id)), apIds };
    return isUnlimited(scope) || (agent !== undefined && isInScope(scope, agent));
  };

  return async ({ kind, name, version, target }) => {
    if (kind === "agent") return (await agents.find(name))?.version === version;
    if (kind === "app") {
      const app = await apps.find(name);
      return app?.version === version && (await hasRole({ ...app, apIds: app.permissions.ap_ids }, target));
    }
    const user = await users.find(name);
    // Grants do not limit administrators.
    return user?.version === version && (kind === "admin" || (await hasRole(user, target)));
  };
}
