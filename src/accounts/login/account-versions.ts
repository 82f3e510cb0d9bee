import { inArray } from "drizzle-orm";
import { type Database, query } from "../../storage/libsql.ts";
import { agents, apps, users } from "../account-tables.ts";

/** Returns the versions of accounts by name. The map omits names without an account. */
export type AccountVersions = (
  kind: "agent" | "app" | "user",
  names: readonly string[],
) => Promise<Map<string, number>>;

const NAMES_PER_QUERY = 1_000;

export function createAccountVersions(database: Database): AccountVersions {
  const selectFrom = {
    agent: (names: string[]) =>
      database.select({ name: agents.apId, version: agents.version }).from(agents).where(inArray(agents.apId, names)),
    app: (names: string[]) =>
      database.select({ name: apps.appName, version: apps.version }).from(apps).where(inArray(apps.appName, names)),
    user: (names: string[]) =>
      database
        .select({ name: users.username, version: users.version })
        .from(users)
        .where(inArray(users.username, names)),
  };
  return async (kind, names) => {
    const versions = new Map<string, number>();
    for (let from = 0; from < names.length; from += NAMES_PER_QUERY) {
      const rows = await query(selectFrom[kind](names.slice(from, from + NAMES_PER_QUERY)));
      for (const { name, version } of rows) versions.set(name, version);
    }
    return versions;
  };
}
