import type { Database } from "../../storage/libsql.ts";
import { createAgentStore } from "../agent-store.ts";
import { createAppStore } from "../app-store.ts";
import { createUserStore } from "../user-store.ts";

/** An account, and its version when a token or connection was issued. */
export interface CredentialRef {
  kind: "admin" | "user" | "agent" | "app";
  /** Username, ap_id or app_name. */
  name: string;
  version: number;
}

/** Returns whether a credential is still valid. Responds or throws within two seconds. */
export type IsCredentialCurrent = (credential: CredentialRef) => Promise<boolean>;

/** Compares versions: a new password, new permissions and a deletion all change the version of an account. */
export function createCredentialCheck(database: Database): IsCredentialCurrent {
  const users = createUserStore(database);
  const stores = { admin: users, user: users, agent: createAgentStore(database), app: createAppStore(database) };
  return async ({ kind, name, version }) => (await stores[kind].find(name))?.version === version;
}
