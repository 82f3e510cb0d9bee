import { readFileSync } from "node:fs";
import { join } from "node:path";
import { createClient as createLibsql } from "@libsql/client/http";
import * as z from "zod";
import type { StoresConfig } from "../../env.ts";
import { ddlFiles } from "../telemetry-store/ddl.ts";
import { appliedDdl, openNodes } from "../telemetry-store/nodes.ts";
import { ACCOUNTS_FOLDER } from "./migrations.ts";

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

export async function pendingTelemetry(config: StoresConfig): Promise<Pending[]> {
  const nodes = await openNodes(config);
  try {
    const recorded = await Promise.all(nodes.available.map(({ client }) => appliedDdl(client)));
    return pendingOf(
      ddlFiles(config.CLICKHOUSE_CLUSTER).map(({ name, sql }) => ({
        name,
        sql,
        isApplied: recorded.every((applied) => applied.has(name)),
      })),
    );
  } finally {
    await nodes.close();
  }
}
