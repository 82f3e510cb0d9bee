import type { Database } from "../../storage/libsql.ts";
import { createAgentStore } from "../agent-store.ts";
import { createAppStore } from "../app-store.ts";
import { createUserStore } from "../user-store.ts";

/** The account version that a token or connection was issued for. */
export interface CredentialRef {
  kind: "admin" | "user" | "agent" | "app";
  /** Username, ap_id or app_name. */
  name: string;
  version: number;
}

/** Returns whether the credential is still current. Responds or fails within two seconds. */
export type IsCredentialCurrent = (credential: CredentialRef) => Promise<boolean>;

/** Compares versions: every change of an account's password or permissions, and its deletion, changes the version. */
export function createCredentialCheck(database: Database): IsCredentialCurrent {
  const users = createUserStore(database);
  const stores = { admin: users, user: users, agent: createAgentStore(database), app: createAppStore(database) };
  return async ({ kind, name, version }) => (await stores[kind].find(name))?.version === version;
}
