import { createHash } from "node:crypto";
import { readdirSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { createClient as createClickHouse } from "@clickhouse/client-web";
import { createClient as createLibsql } from "@libsql/client/http";
import { drizzle } from "drizzle-orm/libsql";
import { migrate } from "drizzle-orm/libsql/migrator";
import type { StoresConfig } from "../../src/env.ts";
import { Refused } from "./console.ts";

const path = (relative: string): string => fileURLToPath(new URL(relative, import.meta.url));

export async function migrateAccounts({ LIBSQL_URL: url, LIBSQL_AUTH_TOKEN: authToken }: StoresConfig): Promise<void> {
  const client = createLibsql({ url, ...(authToken !== undefined && { authToken }) });
  try {
    await migrate(drizzle(client), { migrationsFolder: path("../../drizzle") });
  } finally {
    client.close();
  }
}

const DDL_FOLDER = path("../../src/telemetry/ddl/");

/**
 * Applies the numbered DDL files that are not recorded yet. ClickHouse has no transactions over DDL, so every statement must
 * bear being run twice: after a crash between a file and its record the file runs again.
 */
export async function migrateTelemetry(config: StoresConfig): Promise<void> {
  const connection = {
    url: config.CLICKHOUSE_URL,
    username: config.CLICKHOUSE_USER,
    password: config.CLICKHOUSE_PASSWORD,
  };
  const database = config.CLICKHOUSE_DATABASE;
  const admin = createClickHouse(connection);
  await admin.command({ query: "CREATE DATABASE IF NOT EXISTS {database:Identifier}", query_params: { database } });
  await admin.close();

  const client = createClickHouse({ ...connection, database });
  try {
    await client.command({
      query:
        "CREATE TABLE IF NOT EXISTS schema_migrations (name String, hash String, applied_at DateTime DEFAULT now()) " +
        "ENGINE = MergeTree ORDER BY name",
    });
    const answer = await client.query({ query: "SELECT name, hash FROM schema_migrations", format: "JSONEachRow" });
    const applied = new Map(
      (await answer.json<{ name: string; hash: string }>()).map(({ name, hash }) => [name, hash]),
    );
    for (const name of readdirSync(DDL_FOLDER)
      .filter((file) => file.endsWith(".sql"))
      .sort()) {
      const sql = readFileSync(`${DDL_FOLDER}${name}`, "utf8");
      const hash = createHash("sha256").update(sql).digest("hex");
      const known = applied.get(name);
      if (known === hash) continue;
      if (known !== undefined)
        throw new Refused(`${name} was changed after it had been applied. Put the change in a new file.`);
      for (const query of statements(sql)) await client.command({ query });
      await client.insert({ table: "schema_migrations", values: [{ name, hash }], format: "JSONEachRow" });
    }
  } finally {
    await client.close();
  }
}

/** One statement ends where a line ends with a semicolon. */
const statements = (sql: string): string[] =>
  sql
    .split(/;[ \t]*$/m)
    .map((statement) => statement.trim())
    .filter((statement) => statement !== "");
