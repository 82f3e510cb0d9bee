import type { ClickHouseClient } from "@clickhouse/client-web";
import type { StoresConfig } from "../../env.ts";
import { print, UserError } from "../shared/cli.ts";
import { checkCluster } from "./check-cluster.ts";
import { type DdlFile, ddlFiles, isUnreplicated, onClusterOf, type Statement, statementsOf } from "./ddl.ts";
import { appliedDdl, type Nodes, openClient, openNodes } from "./nodes.ts";

/** Applies the DDL files that are due to ClickHouse, and sets the retention of telemetry. Changes nothing that is up to date. */
export async function migrateTelemetry(
  config: StoresConfig,
  isDue: (file: DdlFile) => boolean = () => true,
): Promise<void> {
  await applyDdl(config, isDue);
  const nodes = await openNodes(config);
  try {
    for (const { client } of nodes.available) await setRetention(client, config);
    if (nodes.missing.length > 0)
      print(`ClickHouse does not respond at ${nodes.missing.join(", ")}. Its tables were not checked.`);
  } finally {
    await nodes.close();
  }
}

/**
 * Applies the numbered DDL files that are due and not recorded yet. ClickHouse has no transactions for DDL, so every statement must be
 * idempotent: after a crash between a file and its record, the file runs again.
 */
export async function applyDdl(config: StoresConfig, isDue: (file: DdlFile) => boolean): Promise<void> {
  await checkCluster(config);
  const nodes = await openNodes(config);
  try {
    const recorded = await Promise.all(nodes.available.map(({ client }) => appliedDdl(client)));
    const pending = ddlFiles(config.CLICKHOUSE_CLUSTER)
      .filter(isDue)
      .filter(({ name, hash }) => {
        if (recorded.some((applied) => (applied.get(name) ?? hash) !== hash))
          throw new UserError(`${name} was changed after it had been applied. Put the change in a new file.`);
        return !recorded.every((applied) => applied.has(name));
      });
    if (pending.length === 0) return;
    if (nodes.missing.length > 0)
      throw new Error(`ClickHouse does not respond at ${nodes.missing.join(", ")}, but ${pending[0]?.name} is due`);
    await createRecords(config, nodes);
    for (const { name, sql, hash } of pending) {
      await runStatements(nodes, statementsOf(sql, config));
      for (const { client } of nodes.available)
        await client.insert({ table: "schema_migrations", values: [{ name, hash }], format: "JSONEachRow" });
    }
  } finally {
    await nodes.close();
  }
}

/** Returns the statements that create the database, and the table that records the applied files. */
export function recordStatements(config: StoresConfig): [database: string, table: string] {
  const onCluster = onClusterOf(config);
  const engine =
    config.CLICKHOUSE_CLUSTER === undefined || isUnreplicated(config)
      ? "MergeTree"
      : "ReplicatedMergeTree('/clickhouse/tables/{database}/schema_migrations', '{shard}-{replica}')";
  return [
    `CREATE DATABASE IF NOT EXISTS ${config.CLICKHOUSE_DATABASE} ${onCluster}`,
    `CREATE TABLE IF NOT EXISTS schema_migrations ${onCluster} (name String, hash String, applied_at DateTime DEFAULT now()) ` +
      `ENGINE = ${engine} ORDER BY name`,
  ];
}

async function createRecords(config: StoresConfig, nodes: Nodes): Promise<void> {
  const [database, table] = recordStatements(config);
  for (const { client, url } of nodes.available) {
    const admin = openClient(config, url);
    await admin.command({ query: database });
    await admin.close();
    await client.command({ query: table });
  }
}

/** Runs statements without recording them, like an interrupted migration. */
export async function applyStatements(config: StoresConfig, files: readonly Pick<DdlFile, "sql">[]): Promise<void> {
  const nodes = await openNodes(config);
  try {
    for (const { sql } of files) await runStatements(nodes, statementsOf(sql, config));
  } finally {
    await nodes.close();
  }
}

async function runStatements({ available }: Nodes, statements: readonly Statement[]): Promise<void> {
  for (const { query, isForEachNode } of statements)
    await Promise.all((isForEachNode ? available : available.slice(0, 1)).map(({ client }) => run(client, query)));
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

/**
 * Sets the retention of the tables that exist and have another one. Existing rows are deleted when ClickHouse drops or merges their data
 * part.
 */
async function setRetention(client: ClickHouseClient, config: StoresConfig): Promise<void> {
  const { TELEMETRY_DAYS, ROLLUP_DAYS, CLICKHOUSE_CLUSTER } = config;
  const suffix = CLICKHOUSE_CLUSTER === undefined ? "_v1" : "_local_v1";
  const result = await client.query({
    query: "SELECT name, engine_full FROM system.tables WHERE database = currentDatabase()",
    format: "JSONEachRow",
  });
  const engines = new Map(
    (await result.json<{ name: string; engine_full: string }>()).map(({ name, engine_full }) => [name, engine_full]),
  );
  for (const { table, column, days } of [
    { table: `points${suffix}`, column: "ts", days: TELEMETRY_DAYS },
    { table: `texts${suffix}`, column: "ts", days: TELEMETRY_DAYS },
    { table: `minutes${suffix}`, column: "minute", days: ROLLUP_DAYS },
    { table: `network_minutes${suffix}`, column: "minute", days: ROLLUP_DAYS },
  ]) {
    const engine = engines.get(table);
    if (engine === undefined || engine.includes(`TTL toDateTime(${column}) + toIntervalDay(${days}) `)) continue;
    await client.command({ query: retentionStatement(config, table, column, days) });
  }
}

export const retentionStatement = (config: StoresConfig, table: string, column: string, days: number): string =>
  `ALTER TABLE ${table} ${onClusterOf(config)} MODIFY TTL toDateTime(${column}) + INTERVAL ${days} DAY ` +
  "SETTINGS materialize_ttl_after_modify = 0";
