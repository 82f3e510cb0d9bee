import { createReadStream } from "node:fs";
import { join } from "node:path";
import { Readable } from "node:stream";
import * as z from "zod";
import type { StoresConfig } from "../../../src/env.ts";
import { UserError } from "../../../src/programs/shared/cli.ts";
import { ddlFiles, onClusterOf } from "../../../src/programs/telemetry-store/ddl.ts";
import { applyDdl } from "../../../src/programs/telemetry-store/migrate.ts";
import { nodesOf } from "../../../src/programs/telemetry-store/nodes.ts";
import { writeLines } from "./backup-files.ts";
import { execute, queryRows, sendQuery } from "./clickhouse-http.ts";
import type { ExistingTables, Manifest, TableFile } from "./manifest.ts";

/**
 * The telemetry in a backup: all rows of each table, read from and written to that table directly. An insert into the table of samples
 * would add the values to the rollups a second time, through its views. `network_minutes_v1` is not in the backup: its view fills it from
 * the rows of `minutes_v1`.
 */

type Telemetry = Manifest["telemetry"];

/** Tab-separated lines with an end marker, which a truncated response lacks. ClickHouse also requires the marker when it reads them. */
const LINE_FORMAT = {
  format_custom_escaping_rule: "Escaped",
  format_custom_field_delimiter: "\t",
  format_custom_row_after_delimiter: "\n",
  format_custom_result_after_delimiter: "\\.\n",
};
const END_MARKER = Buffer.from(LINE_FORMAT.format_custom_result_after_delimiter);

const READ_SETTINGS = {
  ...LINE_FORMAT,
  enable_http_compression: 1,
  // FINAL merges rows with the same key. They are always in the same partition, so each partition can be merged by itself.
  do_not_merge_across_partitions_select_final: 1,
  // The service needs the other threads.
  max_threads: 2,
};

const WRITE_SETTINGS = {
  ...LINE_FORMAT,
  // The fast parser is sometimes wrong in the last bit of a number.
  precise_float_parsing: 1,
  max_partitions_per_insert_block: 0,
  // Two blocks with the same content are not duplicates.
  insert_deduplicate: 0,
  distributed_foreground_insert: 1,
};

const Columns = z.array(z.object({ table: z.string(), columns: z.array(z.string()) }));
const Applied = z.array(z.object({ name: z.string(), hash: z.string() }));
const Counted = z.tuple([z.object({ n: z.coerce.number() })]);
const Named = z.array(z.object({ name: z.string() }));

/** A sample that was committed at the moment of the backup may be this old. */
const MAX_SAMPLE_AGE_MINUTES = 15;

const formOf = ({ CLICKHOUSE_CLUSTER }: StoresConfig): Telemetry["form"] =>
  CLICKHOUSE_CLUSTER === undefined ? "one server" : "cluster";

export async function dumpTelemetry(config: StoresConfig, folder: string, signal: AbortSignal): Promise<Telemetry> {
  const migrations = await queryRows(
    config,
    Applied,
    "SELECT DISTINCT name, hash FROM schema_migrations ORDER BY name",
  );
  const tables = await queryRows(
    config,
    Columns,
    `SELECT table, groupArray(name) AS columns FROM (SELECT table, name FROM system.columns WHERE database = currentDatabase() ORDER BY table, position)
     WHERE table IN (SELECT name FROM system.tables WHERE database = currentDatabase() AND match(name, '_v[0-9]+$')
       AND NOT match(name, '^(samples|network_minutes)_')
       AND ${config.CLICKHOUSE_CLUSTER === undefined ? "engine LIKE '%MergeTree'" : "engine = 'Distributed'"})
     GROUP BY table ORDER BY match(table, '^(points|texts)_'), table`,
  );
  // All queries start at once. ClickHouse evaluates each as of its start, however long reading takes. The rollups are queried before the
  // points, so samples that are committed in between are missing only in the rollups, and `completeRollups` can add them.
  const responses: { table: string; columns: string[]; lines: AsyncIterable<Uint8Array> }[] = [];
  for (const { table, columns } of tables) {
    const query = `SELECT ${columns.join(", ")} FROM ${table} FINAL FORMAT CustomSeparated`;
    responses.push({
      table,
      columns,
      lines: requireEnd(table, await sendQuery(config, query, { settings: READ_SETTINGS, signal })),
    });
  }
  const files = await Promise.all(
    responses.map(async ({ table, columns, lines }): Promise<TableFile> => {
      const { lines: count, ...file } = await writeLines(folder, `telemetry/${table}.tsv.zst`, lines, signal);
      return { table, columns, rows: count - 1, ...file };
    }),
  );
  return { form: formOf(config), migrations, tables: files };
}

/** Passes on a response. Throws if it lacks its end: ClickHouse may fail after it has sent the status 200. */
async function* requireEnd(table: string, { body }: Response): AsyncGenerator<Uint8Array> {
  let end = Buffer.alloc(0);
  for await (const chunk of body ?? []) {
    end = Buffer.concat([end, chunk.subarray(-END_MARKER.length)]).subarray(-END_MARKER.length);
    yield chunk;
  }
  if (!end.equals(END_MARKER))
    throw new UserError(`ClickHouse did not send all rows of ${table}. Run the backup again.`);
}

/** Throws if a later version of the product made the backup, or if it cannot be moved between one server and a cluster. */
export function checkTelemetryVersion(config: StoresConfig, { form, migrations }: Telemetry): void {
  const known = new Map(ddlFiles(form === "cluster" ? form : undefined).map(({ name, hash }) => [name, hash]));
  if (!migrations.every(({ name, hash }) => known.get(name) === hash))
    throw new UserError(
      "The backup has migrations of the telemetry that this version does not know. Use the version that made it, or a later one.",
    );
  if (form === formOf(config) || migrations.length === known.size) return;
  const origin = form === "cluster" ? "a cluster" : "one server";
  throw new UserError(
    `The backup is of an earlier version on ${origin}. Restore it to ${origin}, or make a new one with this version.`,
  );
}

/** Returns the telemetry tables that already exist, found by the names that this product uses. */
export async function findTelemetryTables(config: StoresConfig): Promise<ExistingTables> {
  const query = `SELECT name FROM system.tables WHERE database = '${config.CLICKHOUSE_DATABASE}'
     AND (match(name, '^(samples|points|texts|minutes|network_minutes|metrics|agents)(_local|_mv)?_v[0-9]+$|^(points|texts)_weeks(_local)?$')
       OR name = 'schema_migrations')
     ORDER BY engine != 'MaterializedView', engine != 'Distributed'`;
  const found: z.output<typeof Named> = [];
  for (const node of await nodesOf(config))
    found.push(...(await queryRows({ ...node, CLICKHOUSE_DATABASE: "system" }, Named, query)));
  const tables = [...new Set(found.map(({ name }) => name))];
  for (const table of tables.filter((name) => /^(points|texts|minutes|agents)_v\d+$/.test(name))) {
    const [{ n }] = await queryRows(config, Counted, `SELECT count() AS n FROM (SELECT 1 FROM ${table} LIMIT 1)`);
    if (n > 0) return { tables, isEmpty: false };
  }
  return { tables, isEmpty: true };
}

/** Drops the existing tables and loads those of the backup. Throws if a table ends up with another number of rows. */
export async function loadTelemetry(
  config: StoresConfig,
  folder: string,
  { form, migrations, tables }: Telemetry,
  existing: readonly string[],
  { startedAt, signal, onTable }: { startedAt: string; signal: AbortSignal; onTable: (file: TableFile) => void },
): Promise<void> {
  const cluster = config.CLICKHOUSE_CLUSTER;
  const onCluster = onClusterOf(config);
  const nodes = await nodesOf(config);
  for (const table of existing)
    for (const node of nodes) await execute(node, `DROP TABLE IF EXISTS ${table} ${onCluster} SYNC`, { signal });
  const applied = new Set(migrations.map(({ name }) => name));
  await applyDdl(config, ({ name }) => form !== formOf(config) || applied.has(name));
  for (const table of tables) {
    // Expired rows must not be deleted before they are counted. The migration afterwards sets the TTL again.
    const stored = cluster === undefined ? table.table : table.table.replace(/_v(\d+)$/, "_local_v$1");
    for (const node of nodes)
      if (await hasTtl(node, stored)) await execute(node, `ALTER TABLE ${stored} ${onCluster} REMOVE TTL`, { signal });
    const query = `INSERT INTO ${table.table} (${table.columns.join(", ")}) FORMAT CustomSeparated`;
    const body = Readable.toWeb(createReadStream(join(folder, table.file)));
    await execute(config, query, { settings: WRITE_SETTINGS, signal, body, encoding: "zstd" });
    const [{ n }] = await queryRows(config, Counted, `SELECT count() AS n FROM ${table.table} FINAL`);
    if (n !== table.rows)
      throw new UserError(`${table.table} has ${n} rows after the restore, but ${table.rows} in the backup.`);
    onTable(table);
  }
  if (tables.some(({ table }) => table === "minutes_v1")) await completeRollups(config, startedAt);
}

async function hasTtl(config: StoresConfig, table: string): Promise<boolean> {
  const query = `SELECT count() AS n FROM system.tables WHERE database = currentDatabase() AND name = '${table}' AND engine_full LIKE '%TTL %'`;
  const [{ n }] = await queryRows(config, Counted, query);
  return n > 0;
}

/** Adds samples that were committed while the backup started its queries to the rollups and to the times of last contact. */
async function completeRollups(config: StoresConfig, startedAt: string): Promise<void> {
  const fromS = Math.floor(Date.parse(startedAt) / 60_000 - MAX_SAMPLE_AGE_MINUTES) * 60;
  await execute(
    config,
    `INSERT INTO minutes_v1
     SELECT ap_id, metric, at, stored - summed, value_total - summed_total
     FROM (
       SELECT ap_id, metric, toDateTime64(floor(toUnixTimestamp64Milli(ts) / 60000) * 60, 0, 'UTC') AS at,
         count() AS stored, sum(value) AS value_total
       FROM points_v1 FINAL WHERE ts >= toDateTime64(${fromS}, 3, 'UTC') GROUP BY ap_id, metric, at
     ) AS points
     LEFT JOIN (
       SELECT ap_id, metric, minute AS at, sum(n) AS summed, sum(total) AS summed_total
       FROM minutes_v1 WHERE minute >= toDateTime64(${fromS}, 0, 'UTC') GROUP BY ap_id, metric, at
     ) AS minutes USING (ap_id, metric, at)
     WHERE stored > summed`,
    { settings: WRITE_SETTINGS },
  );
  for (const table of ["points_v1", "texts_v1"])
    await execute(
      config,
      `INSERT INTO agents_v1 (ap_id, last_seen) SELECT ap_id, max(ts) FROM ${table} WHERE ts >= toDateTime64(${fromS}, 3, 'UTC') GROUP BY ap_id`,
      { settings: WRITE_SETTINGS },
    );
}
