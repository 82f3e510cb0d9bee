import type { StoredGrant } from "../accounts/account-tables.ts";
import type { AppStore } from "../accounts/app-store.ts";
import type { UserStore } from "../accounts/user-store.ts";
import { isUnlimited } from "../auth/agent-scope.ts";
import type { Identity } from "../auth/identity.ts";
import { visibleAgents } from "../auth/permissions.ts";
import { groupsIn, parseSelector } from "../lib/selectors.ts";

/** Returns a test of whether the caller may see a group. For it, all others do not exist. */
export type VisibleGroups = (actor: Identity) => Promise<(name: string) => boolean>;

/** Callers that see all agents see all groups. Others see those that their grants name. */
export function createVisibleGroups(users: Pick<UserStore, "find">, apps: Pick<AppStore, "find">): VisibleGroups {
  /** Reads the account: its identity has the conditions of the groups, not their names. */
  const grantsOf = async ({ kind, id, name }: Identity): Promise<readonly StoredGrant[]> => {
    const account = kind === "app" ? await apps.find(name) : await users.find(name);
    return account?.id === id ? (account.grants ?? []) : [];
  };

  return async (actor) => {
    if (isUnlimited(visibleAgents(actor))) return () => true;
    const grants = await grantsOf(actor);
    const names = new Set(grants.flatMap(({ selector }) => groupsIn(parseSelector(selector))));
    return (name) => names.has(name);
  };
}
