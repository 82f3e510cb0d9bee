import { createAgentStore } from "../accounts/agent-store.ts";
import { createAppStore } from "../accounts/app-store.ts";
import type { Database } from "../accounts/database.ts";
import { createUserStore } from "../accounts/user-store.ts";
import type { Reader } from "./opening.ts";

/** Whether a reader's token is still any good. Answers or fails within two seconds. */
export type StillAllowed = (reader: Reader) => Promise<boolean>;

/**
 * Every change of what an account may do, a new password and its end included, changes its version. So whoever could open the
 * socket may go on reading for as long as the version is the same.
 */
export function createStillAllowed(database: Database): StillAllowed {
  const users = createUserStore(database);
  const stores = { admin: users, user: users, agent: createAgentStore(database), app: createAppStore(database) };
  return async ({ kind, name, version }) => (await stores[kind].find(name))?.version === version;
}
