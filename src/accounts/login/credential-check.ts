import { type GrantRole, isInScope, isUnlimited } from "../../auth/agent-scope.ts";
import type { Database } from "../../storage/libsql.ts";
import { createAgentStore } from "../agents/agent-store.ts";
import { createAppStore } from "../app-store.ts";
import { createGroupStore } from "../group-store.ts";
import { createUserStore } from "../user-store.ts";
import { type Limits, scopeOfLimits } from "./account-scope.ts";

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

/**
 * Compares versions: a new password, other grants or permissions and a deletion all change the version of an account. Whether an
 * agent is in its scope also depends on the agent's labels, which do not change the version. So each check reads the agent.
 */
export function createCredentialCheck(database: Database): IsCredentialCurrent {
  const users = createUserStore(database);
  const apps = createAppStore(database);
  const agents = createAgentStore(database);
  const groups = createGroupStore(database);

  const hasRole = async (limits: Limits, target: CredentialRef["target"]): Promise<boolean> => {
    if (target === undefined || (limits.grants === null && limits.apIds === undefined)) return true;
    const [scope, agent] = await Promise.all([scopeOfLimits(groups, limits, target.role), agents.find(target.apId)]);
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
