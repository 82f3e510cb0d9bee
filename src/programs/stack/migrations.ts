import { createHash } from "node:crypto";
import { readdirSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { type ClickHouseClient, ClickHouseLogLevel, createClient as createClickHouse } from "@clickhouse/client-web";
import { createClient as createLibsql } from "@libsql/client/http";
import { drizzle } from "drizzle-orm/libsql";
import { migrate } from "drizzle-orm/libsql/migrator";
import type { StoresConfig } from "../../env.ts";
import { loadGazetteer } from "../gazetteer/load.ts";
import { UserError } from "../shared/cli.ts";
import { rejectInterruptedRestore } from "./restore-mark.ts";

const path = (relative: string): string => fileURLToPath(new URL(relative, import.meta.url));

export const ACCOUNTS_FOLDER = path("../../../drizzle");

export async function migrateAccounts({ LIBSQL_URL: url, LIBSQL_AUTH_TOKEN: authToken }: StoresConfig): Promise<void> {
  const client = createLibsql({ url, ...(authToken !== undefined && { authToken }) });
  try {
    await rejectInterruptedRestore(client);
    await migrate(drizzle(client), { migrationsFolder: ACCOUNTS_FOLDER });
  } finally {
    client.close();
  }
}

/** Loads the names of the world's towns, unless they are there. An abort stops it between two statements; the next call starts over. */
export async function fillGazetteer(
  { LIBSQL_URL: url, LIBSQL_AUTH_TOKEN: authToken }: StoresConfig,
  signal?: AbortSignal,
): Promise<void> {
  const client = createLibsql({ url, ...(authToken !== undefined && { authToken }) });
  try {
    await loadGazetteer(client, Date.now(), signal);
  } finally {
    client.close();
  }
}

const DDL_FOLDER = path("../../telemetry/store/ddl/");

export interface DdlFile {
  name: string;
  sql: string;
  hash: string;
}

/** Returns the DDL files in order. A cluster has its own files. */
export function ddlFiles(cluster: string | undefined): DdlFile[] {
  const folder = cluster === undefined ? DDL_FOLDER : `${DDL_FOLDER}cluster/`;
  return readdirSync(folder)
    .filter((file) => file.endsWith(".sql"))
    .sort()
    .map((file) => {
      const sql = readFileSync(`${folder}${file}`, "utf8");
      const hash = createHash("sha256").update(sql).digest("hex");
      return { name: cluster === undefined ? file : `cluster/${file}`, sql, hash };
    });
}

/** Returns the files that were applied to a database, with their hashes. */
export async function appliedDdl(client: ClickHouseClient): Promise<Map<string, string>> {
  const result = await client.query({ query: "SELECT name, hash FROM schema_migrations", format: "JSONEachRow" });
  return new Map((await result.json<{ name: string; hash: string }>()).map(({ name, hash }) => [name, hash]));
}

/** Applies the DDL files that are due to ClickHouse, and sets the retention of telemetry. */
export async function migrateTelemetry(
  config: StoresConfig,
  isDue: (file: DdlFile) => boolean = () => true,
): Promise<void> {
  await applyDdl(config, isDue);
  const client = createClickHouse({ ...connectionOf(config), database: config.CLICKHOUSE_DATABASE });
  try {
    const result = await client.query({
      query: "SELECT name FROM system.tables WHERE database = currentDatabase()",
      format: "JSONEachRow",
    });
    const tables = new Set((await result.json<{ name: string }>()).map(({ name }) => name));
    for (const query of retention(config, tables)) await client.command({ query });
  } finally {
    await client.close();
  }
}

/**
 * Applies the numbered DDL files that are due and not recorded yet. ClickHouse has no transactions for DDL, so every statement must be
 * idempotent: after a crash between a file and its record, the file runs again.
 */
export async function applyDdl(config: StoresConfig, isDue: (file: DdlFile) => boolean): Promise<void> {
  const connection = connectionOf(config);
  const { CLICKHOUSE_DATABASE: database, CLICKHOUSE_CLUSTER: cluster } = config;
  const onCluster = onClusterOf(config);
  const admin = createClickHouse(connection);
  await admin.command({
    query: `CREATE DATABASE IF NOT EXISTS {database:Identifier} ${onCluster}`,
    query_params: { database },
  });
  await admin.close();

  const client = createClickHouse({ ...connection, database });
  try {
    const engine =
      cluster === undefined
        ? "MergeTree"
        : "ReplicatedMergeTree('/clickhouse/tables/{database}/schema_migrations', '{shard}-{replica}')";
    await client.command({
      query:
        `CREATE TABLE IF NOT EXISTS schema_migrations ${onCluster} (name String, hash String, applied_at DateTime DEFAULT now()) ` +
        `ENGINE = ${engine} ORDER BY name`,
    });
    const applied = await appliedDdl(client);
    for (const { name, sql, hash } of ddlFiles(cluster).filter(isDue)) {
      const appliedHash = applied.get(name);
      if (appliedHash === hash) continue;
      if (appliedHash !== undefined)
        throw new UserError(`${name} was changed after it had been applied. Put the change in a new file.`);
      await runAll(client, sql, cluster);
      await client.insert({ table: "schema_migrations", values: [{ name, hash }], format: "JSONEachRow" });
    }
  } finally {
    await client.close();
  }
}

/** One statement may copy a day of telemetry. */
const STATEMENT_MS = 10 * 60_000;

const connectionOf = (config: StoresConfig) => ({
  url: config.CLICKHOUSE_URL,
  username: config.CLICKHOUSE_USER,
  password: config.CLICKHOUSE_PASSWORD,
  request_timeout: STATEMENT_MS,
  // At other levels the client prints advice about load balancers.
  log: { level: ClickHouseLogLevel.ERROR },
});

/** Runs statements without recording them, like an interrupted migration. */
export async function applyStatements(config: StoresConfig, files: readonly Pick<DdlFile, "sql">[]): Promise<void> {
  const client = createClickHouse({ ...connectionOf(config), database: config.CLICKHOUSE_DATABASE });
  try {
    for (const { sql } of files) await runAll(client, sql, config.CLICKHOUSE_CLUSTER);
  } finally {
    await client.close();
  }
}

async function runAll(client: ClickHouseClient, sql: string, cluster: string | undefined): Promise<void> {
  for (const query of statements(sql.replaceAll("<cluster>", cluster ?? ""))) await run(client, query);
}

const FOR_EACH = /^-- for each: (.+)$/m;

/**
 * Runs a statement. After a comment `-- for each: <query>`, runs it once for each row of that query, with the columns as parameters. A
 * file can thus copy a table in steps, and skip the steps that are done.
 */
async function run(client: ClickHouseClient, query: string): Promise<void> {
  const [, each] = FOR_EACH.exec(query) ?? [];
  if (each === undefined) return void (await client.command({ query }));
  const result = await client.query({ query: each, format: "JSONEachRow" });
  for (const row of await result.json<Record<string, unknown>>()) await client.command({ query, query_params: row });
}

/** Returns the clause for statements that create or change a table. */
export const onClusterOf = ({ CLICKHOUSE_CLUSTER: cluster }: StoresConfig): string =>
  cluster === undefined ? "" : `ON CLUSTER ${cluster}`;

/**
 * Returns the statements that set the retention of the existing tables. Existing rows are deleted when ClickHouse drops or merges their
 * data part.
 */
function retention(config: StoresConfig, existing: ReadonlySet<string>): string[] {
  const { TELEMETRY_DAYS, ROLLUP_DAYS, CLICKHOUSE_CLUSTER } = config;
  const suffix = CLICKHOUSE_CLUSTER === undefined ? "_v1" : "_local_v1";
  return [
    { table: `points${suffix}`, column: "ts", days: TELEMETRY_DAYS },
    { table: `texts${suffix}`, column: "ts", days: TELEMETRY_DAYS },
    { table: `minutes${suffix}`, column: "minute", days: ROLLUP_DAYS },
    { table: `network_minutes${suffix}`, column: "minute", days: ROLLUP_DAYS },
  ]
    .filter(({ table }) => existing.has(table))
    .map(
      ({ table, column, days }) =>
        `ALTER TABLE ${table} ${onClusterOf(config)} MODIFY TTL toDateTime(${column}) + INTERVAL ${days} DAY ` +
        "SETTINGS materialize_ttl_after_modify = 0",
    );
}

/** Splits SQL at semicolons at the end of a line. */
const statements = (sql: string): string[] =>
  sql
    .split(/;[ \t]*$/m)
    .map((statement) => statement.trim())
    .filter((statement) => statement !== "");
