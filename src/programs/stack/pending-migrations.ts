import { readFileSync } from "node:fs";
import { join } from "node:path";
import { ClickHouseError, createClient as createClickHouse } from "@clickhouse/client-web";
import { createClient as createLibsql } from "@libsql/client/http";
import * as z from "zod";
import type { StoresConfig } from "../../env.ts";
import { ACCOUNTS_FOLDER, appliedDdl, ddlFiles } from "./migrations.ts";

/** Lists the migrations that `npm run migrate` would apply. Changes nothing. */

export interface Pending {
  name: string;
  /** It removes something that an earlier version of the Worker may still use, so it must be applied after the deployment. */
  isDestructive: boolean;
}

const DESTRUCTIVE = /\b(?:DROP\s+(?:TABLE|COLUMN)|RENAME\s+(?:TABLE|COLUMN|TO))\b/i;
const withoutComments = (sql: string): string => sql.replace(/--.*$/gm, "");

export const isDestructive = (sql: string): boolean => DESTRUCTIVE.test(withoutComments(sql));

/** No migration of a new database is destructive, because no Worker uses the database yet. */
const pendingOf = (files: { name: string; sql: string; isApplied: boolean }[]): Pending[] => {
  const isNew = files.every(({ isApplied }) => !isApplied);
  return files
    .filter(({ isApplied }) => !isApplied)
    .map(({ name, sql }) => ({ name, isDestructive: !isNew && isDestructive(sql) }));
};

const Journal = z.object({ entries: z.array(z.object({ tag: z.string(), when: z.number() })) });

export async function pendingAccounts({ LIBSQL_URL: url, LIBSQL_AUTH_TOKEN: authToken }: StoresConfig) {
  const client = createLibsql({ url, ...(authToken !== undefined && { authToken }) });
  try {
    const tables = await client.execute("SELECT 1 FROM sqlite_master WHERE name = '__drizzle_migrations'");
    const newest =
      tables.rows.length === 0 ? undefined : await client.execute("SELECT max(created_at) FROM __drizzle_migrations");
    const appliedUpTo = Number(newest?.rows[0]?.[0] ?? 0);
    const { entries } = Journal.parse(JSON.parse(readFileSync(join(ACCOUNTS_FOLDER, "meta/_journal.json"), "utf8")));
    return pendingOf(
      entries.map(({ tag, when }) => ({
        name: `drizzle/${tag}.sql`,
        sql: readFileSync(join(ACCOUNTS_FOLDER, `${tag}.sql`), "utf8"),
        isApplied: when <= appliedUpTo,
      })),
    );
  } finally {
    client.close();
  }
}

const NO_SUCH = new Set(["UNKNOWN_DATABASE", "UNKNOWN_TABLE"]);

export async function pendingTelemetry(config: StoresConfig): Promise<Pending[]> {
  const client = createClickHouse({
    url: config.CLICKHOUSE_URL,
    username: config.CLICKHOUSE_USER,
    password: config.CLICKHOUSE_PASSWORD,
    database: config.CLICKHOUSE_DATABASE,
  });
  try {
    const applied = await appliedDdl(client).catch((error: unknown) => {
      if (error instanceof ClickHouseError && NO_SUCH.has(error.type ?? "")) return new Map<string, string>();
      throw error;
    });
    return pendingOf(
      ddlFiles(config.CLICKHOUSE_CLUSTER).map(({ name, sql }) => ({ name, sql, isApplied: applied.has(name) })),
    );
  } finally {
    await client.close();
  }
}
