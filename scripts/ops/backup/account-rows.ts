import { type Client, createClient, type InArgs, type Transaction } from "@libsql/client/http";
import { readMigrationFiles } from "drizzle-orm/migrator";
import type { StoresConfig } from "../../../src/env.ts";
import { UserError } from "../../../src/programs/shared/cli.ts";
import { ACCOUNTS_FOLDER } from "../../../src/programs/stack/migrations.ts";
import { readLines, writeLines } from "./backup-files.ts";
import type { Manifest, TableFile } from "./manifest.ts";
import { UNFINISHED } from "./unfinished.ts";

/** The accounts database in a backup: its schema as it is, and of each table every row, as of one moment. */

type Accounts = Manifest["accounts"];

const MIGRATIONS = "__drizzle_migrations";
/** How far each table has counted, so that no number is given out twice; the database makes it by itself. */
const SEQUENCES = "sqlite_sequence";
/** Comes with the product, and makes nine tenths of the database. */
const LEFT_OUT = ["gazetteer", "gazetteer_editions"];
const ROWS_AT_ONCE = 500;

export function openAccounts({ LIBSQL_URL: url, LIBSQL_AUTH_TOKEN: authToken }: StoresConfig): Client {
  return createClient({ url, ...(authToken !== undefined && { authToken }) });
}

export async function dumpAccounts(client: Client, folder: string, signal: AbortSignal): Promise<Accounts> {
  // One transaction over everything: others may write meanwhile, and it does not see that.
  const transaction = await client.transaction("read");
  try {
    const found = await transaction.execute(
      "SELECT type, name, sql FROM sqlite_master WHERE sql IS NOT NULL AND name NOT LIKE 'libsql\\_%' ESCAPE '\\' ORDER BY rowid",
    );
    const all = found.rows.map(({ type, name, sql }) => ({ type: String(type), name: String(name), sql: String(sql) }));
    const names = all.flatMap(({ type, name }) => (type === "table" && !LEFT_OUT.includes(name) ? [name] : []));
    if (!names.includes(MIGRATIONS))
      throw new UserError("There is no accounts database there (npm run migrate makes one).");
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
      schema: all.filter(({ name }) => name !== SEQUENCES),
      tables,
    };
  } finally {
    transaction.close();
  }
}

/** Those that hold something of their own; others are computed. */
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
    `ORDER BY rowid LIMIT ${ROWS_AT_ONCE}`;
  for (let after = Number.MIN_SAFE_INTEGER, isMore = true; isMore; ) {
    const { rows } = await transaction.execute({ sql, args: [after] });
    const lines = rows.map((row) => `${JSON.stringify(columns.map((_, i) => plain(row[i + 1])))}\n`);
    yield Buffer.from(lines.join(""));
    after = Number(rows.at(-1)?.[0] ?? after);
    isMore = rows.length === ROWS_AT_ONCE;
  }
}

function plain(value: unknown): unknown {
  if (value instanceof ArrayBuffer) throw new Error("A row holds bytes, which a line of JSON cannot");
  return value;
}

/** Refuses what a later version of the product made. */
export function checkAccountsLevel({ migrations }: Accounts): void {
  const known = new Set(readMigrationFiles({ migrationsFolder: ACCOUNTS_FOLDER }).map(({ hash }) => hash));
  if (!migrations.every((hash) => known.has(hash)))
    throw new UserError(
      "The backup has migrations of the accounts that this version does not know. Use the version that made it, or a later one.",
    );
}

export interface Present {
  tables: string[];
  isEmpty: boolean;
}

/** What is there of accounts already. Refuses a database that holds other things: it is not ours to clear. */
export async function presentAccounts(client: Client, { schema }: Accounts): Promise<Present> {
  const found = await client.execute(
    "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\' AND name NOT LIKE 'libsql\\_%' ESCAPE '\\'",
  );
  const tables = found.rows.map(({ name }) => String(name));
  const migrations = readMigrationFiles({ migrationsFolder: ACCOUNTS_FOLDER }).flatMap(({ sql }) => sql);
  const made = migrations.flatMap((sql) => /CREATE TABLE `(\w+)`/.exec(sql)?.[1] ?? []);
  const ours = new Set([...made, ...schema.map(({ name }) => name), MIGRATIONS, UNFINISHED]);
  const foreign = tables.filter((table) => !ours.has(table));
  if (foreign.length > 0)
    throw new UserError(`The accounts database also holds ${foreign.join(", ")}. Restore into one of its own.`);
  for (const table of tables) {
    if ([...LEFT_OUT, MIGRATIONS].includes(table)) continue;
    const { rows } = await client.execute(`SELECT 1 FROM ${quoted(table)} LIMIT 1`);
    if (rows.length > 0 || table === UNFINISHED) return { tables, isEmpty: false };
  }
  return { tables, isEmpty: true };
}

/** Marks the stores as half restored, until `endRestore`. */
export async function beginRestore(client: Client): Promise<void> {
  await client.execute(`CREATE TABLE IF NOT EXISTS ${UNFINISHED} (started_at integer)`);
}

export async function endRestore(client: Client): Promise<void> {
  await client.execute(`DROP TABLE ${UNFINISHED}`);
}

export async function loadAccounts(
  client: Client,
  folder: string,
  { schema, tables }: Accounts,
  present: readonly string[],
  signal: AbortSignal,
): Promise<void> {
  const gone = present.filter((table) => table !== UNFINISHED);
  const [made, indexes] = [
    schema.filter(({ type }) => type === "table"),
    schema.filter(({ type }) => type !== "table"),
  ];
  // As a migration: the order of the tables is then of no concern to foreign keys.
  await client.migrate([...gone.map((table) => `DROP TABLE ${quoted(table)}`), ...made.map(({ sql }) => sql)]);
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
    if (n !== rows) throw new UserError(`${table} has ${n} rows after the restore, and had ${rows} in the backup.`);
  }
}

async function fill(
  client: Client,
  table: string,
  columns: string[],
  lines: AsyncIterable<string>,
  signal: AbortSignal,
): Promise<void> {
  const places = columns.map(() => "?").join(", ");
  const sql = `INSERT INTO ${quoted(table)} (${columns.map(quoted).join(", ")}) VALUES (${places})`;
  let some: { sql: string; args: InArgs }[] = [];
  const flush = async () => {
    signal.throwIfAborted();
    if (some.length > 0) await client.migrate(some);
    some = [];
  };
  for await (const line of lines) {
    some.push({ sql, args: JSON.parse(line) as InArgs });
    if (some.length === ROWS_AT_ONCE) await flush();
  }
  await flush();
}

const quoted = (name: string): string => `"${name.replaceAll('"', '""')}"`;
