import { createAppStore } from "../accounts/app-store.ts";
import { createGroupStore } from "../accounts/group-store.ts";
import { type AccountRef, scopeOfLimits } from "../accounts/login/account-scope.ts";
import { createUserStore } from "../accounts/user-store.ts";
import { type AgentScope, ALL_AGENTS } from "../auth/agent-scope.ts";
import { scopesOfApp } from "../auth/roles.ts";
import type { Database } from "../storage/libsql.ts";
import type { EventViewer } from "./visibility.ts";

/** Returns what an account sees now, or undefined if it does not exist any more. */
export type FindViewer = (account: AccountRef) => Promise<EventViewer | undefined>;

const NO_AGENTS: AgentScope = { selectors: [] };

/** Reads the account and the groups of its grants each time. */
export function createEventViewers(database: Database): FindViewer {
  const users = createUserStore(database);
  const apps = createAppStore(database);
  const groups = createGroupStore(database);

  return async ({ kind, id, name }) => {
    if (kind === "app") {
      const app = await apps.find(name);
      if (app?.id !== id) return undefined;
      const canRead = scopesOfApp(app.permissions, app.grants).includes("agents:read");
      const limits = { ...app, apIds: app.permissions.ap_ids };
      const scope = canRead ? await scopeOfLimits(groups, limits, "viewer") : NO_AGENTS;
      return { seesAll: false, id, scope };
    }
    const user = await users.find(name);
    if (user?.id !== id) return undefined;
    // Grants do not limit administrators.
    const isAdmin = user.roles.includes("admin");
    return { seesAll: isAdmin, id, scope: isAdmin ? ALL_AGENTS : await scopeOfLimits(groups, user, "viewer") };
  };
}
