import { type Client, createClient, type InArgs, type Transaction } from "@libsql/client/http";
import { readMigrationFiles } from "drizzle-orm/migrator";
import type { StoresConfig } from "../../../src/env.ts";
import { UserError } from "../../../src/programs/shared/cli.ts";
import { ACCOUNTS_FOLDER } from "../../../src/programs/stack/migrations.ts";
import { RESTORE_IN_PROGRESS } from "../../../src/programs/stack/restore-mark.ts";
import { readLines, writeLines } from "./backup-files.ts";
import type { ExistingTables, Manifest, TableFile } from "./manifest.ts";

/** The accounts database in a backup: its schema and all rows of each table, as of one moment. */

type Accounts = Manifest["accounts"];

const MIGRATIONS = "__drizzle_migrations";
/** Stores the last id of each table, so that the database never assigns an id twice. The database creates this table itself. */
const SEQUENCES = "sqlite_sequence";
/** The product ships this data, which is nine tenths of the database. */
const EXCLUDED = ["gazetteer", "gazetteer_editions"];
const BATCH_ROWS = 500;

export function openAccounts({ LIBSQL_URL: url, LIBSQL_AUTH_TOKEN: authToken }: StoresConfig): Client {
  return createClient({ url, ...(authToken !== undefined && { authToken }) });
}

export async function dumpAccounts(client: Client, folder: string, signal: AbortSignal): Promise<Accounts> {
  // One transaction reads everything, and does not see what others write in the meantime.
  const transaction = await client.transaction("read");
  try {
    const master = await transaction.execute(
      "SELECT type, name, sql FROM sqlite_master WHERE sql IS NOT NULL AND name NOT LIKE 'libsql\\_%' ESCAPE '\\' ORDER BY rowid",
    );
    const schema = master.rows.map(({ type, name, sql }) => ({
      type: String(type),
      name: String(name),
      sql: String(sql),
    }));
    const names = schema.flatMap(({ type, name }) => (type === "table" && !EXCLUDED.includes(name) ? [name] : []));
    if (!names.includes(MIGRATIONS))
      throw new UserError("LIBSQL_URL has no accounts database. Create one with npm run migrate.");
    const tables: TableFile[] = [];
    for (const table of names) {
      const columns = await columnsOf(transaction, table);
      const rows = rowsOf(transaction, table, columns);
      const { lines, ...file } = await writeLines(folder, `accounts/${table}.ndjson.zst`, rows, signal);
      tables.push({ table, columns, rows: lines, ...file });
    }
    const applied = await transaction.execute(`SELECT hash FROM ${MIGRATIONS} ORDER BY created_at`);
    return {
      migrations: applied.rows.map(({ hash }) => String(hash)),
      schema: schema.filter(({ name }) => name !== SEQUENCES),
      tables,
    };
  } finally {
    transaction.close();
  }
}

/** Returns the stored columns of a table, without the computed ones. */
async function columnsOf(transaction: Transaction, table: string): Promise<string[]> {
  const { rows } = await transaction.execute({
    sql: "SELECT name FROM pragma_table_xinfo(?) WHERE hidden = 0",
    args: [table],
  });
  return rows.map(({ name }) => String(name));
}

async function* rowsOf(transaction: Transaction, table: string, columns: string[]): AsyncGenerator<Uint8Array> {
  const sql =
    `SELECT rowid, ${columns.map(quoted).join(", ")} FROM ${quoted(table)} WHERE rowid > ? ` +
    `ORDER BY rowid LIMIT ${BATCH_ROWS}`;
  for (let lastRowId = Number.MIN_SAFE_INTEGER, hasMore = true; hasMore; ) {
    const { rows } = await transaction.execute({ sql, args: [lastRowId] });
    const lines = rows.map((row) => `${JSON.stringify(columns.map((_, i) => requireJsonValue(row[i + 1])))}\n`);
    yield Buffer.from(lines.join(""));
    lastRowId = Number(rows.at(-1)?.[0] ?? lastRowId);
    hasMore = rows.length === BATCH_ROWS;
  }
}

function requireJsonValue(value: unknown): unknown {
  if (value instanceof ArrayBuffer) throw new Error("A row contains a BLOB, which JSON cannot represent");
  return value;
}

/** Throws if a later version of the product made the backup. */
export function checkAccountsVersion({ migrations }: Accounts): void {
  const known = new Set(readMigrationFiles({ migrationsFolder: ACCOUNTS_FOLDER }).map(({ hash }) => hash));
  if (!migrations.every((hash) => known.has(hash)))
    throw new UserError(
      "The backup has migrations of the accounts that this version does not know. Use the version that made it, or a later one.",
    );
}

/** Returns the account tables that already exist. Throws if the database has tables of another product, which must not be deleted. */
export async function findAccountTables(client: Client, { schema }: Accounts): Promise<ExistingTables> {
  const master = await client.execute(
    "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\' AND name NOT LIKE 'libsql\\_%' ESCAPE '\\'",
  );
  const tables = master.rows.map(({ name }) => String(name));
  const migrations = readMigrationFiles({ migrationsFolder: ACCOUNTS_FOLDER }).flatMap(({ sql }) => sql);
  const created = migrations.flatMap((sql) => /CREATE TABLE `(\w+)`/.exec(sql)?.[1] ?? []);
  const own = new Set([...created, ...schema.map(({ name }) => name), MIGRATIONS, RESTORE_IN_PROGRESS]);
  const foreign = tables.filter((table) => !own.has(table));
  if (foreign.length > 0)
    throw new UserError(
      `The accounts database contains other tables (${foreign.join(", ")}). Restore into an empty database.`,
    );
  for (const table of tables) {
    if ([...EXCLUDED, MIGRATIONS].includes(table)) continue;
    const { rows } = await client.execute(`SELECT 1 FROM ${quoted(table)} LIMIT 1`);
    if (rows.length > 0 || table === RESTORE_IN_PROGRESS) return { tables, isEmpty: false };
  }
  return { tables, isEmpty: true };
}

/** Drops the existing tables and loads those of the backup. Throws if a table ends up with another number of rows. */
export async function loadAccounts(
  client: Client,
  folder: string,
  { schema, tables }: Accounts,
  existing: readonly string[],
  signal: AbortSignal,
): Promise<void> {
  const dropped = existing.filter((table) => table !== RESTORE_IN_PROGRESS);
  const [created, indexes] = [
    schema.filter(({ type }) => type === "table"),
    schema.filter(({ type }) => type !== "table"),
  ];
  // `migrate` disables foreign keys, so the order of the tables does not matter.
  await client.migrate([...dropped.map((table) => `DROP TABLE ${quoted(table)}`), ...created.map(({ sql }) => sql)]);
  for (const { table, columns, file } of tables) {
    if (table === SEQUENCES) continue;
    await fill(client, table, columns, readLines(folder, file), signal);
  }
  await client.migrate(indexes.map(({ sql }) => sql));
  const sequences = tables.find(({ table }) => table === SEQUENCES);
  if (sequences !== undefined) {
    await client.execute(`DELETE FROM ${SEQUENCES}`);
    await fill(client, SEQUENCES, sequences.columns, readLines(folder, sequences.file), signal);
  }
  for (const { table, rows } of tables) {
    const counted = await client.execute(`SELECT count(*) AS n FROM ${quoted(table)}`);
    const n = Number(counted.rows[0]?.n);
    if (n !== rows) throw new UserError(`${table} has ${n} rows after the restore, but ${rows} in the backup.`);
  }
}

async function fill(
  client: Client,
  table: string,
  columns: string[],
  lines: AsyncIterable<string>,
  signal: AbortSignal,
): Promise<void> {
  const placeholders = columns.map(() => "?").join(", ");
  const sql = `INSERT INTO ${quoted(table)} (${columns.map(quoted).join(", ")}) VALUES (${placeholders})`;
  let batch: { sql: string; args: InArgs }[] = [];
  const flush = async () => {
    signal.throwIfAborted();
    if (batch.length > 0) await client.migrate(batch);
    batch = [];
  };
  for await (const line of lines) {
    batch.push({ sql, args: JSON.parse(line) as InArgs });
    if (batch.length === BATCH_ROWS) await flush();
  }
  await flush();
}

const quoted = (name: string): string => `"${name.replaceAll('"', '""')}"`;
