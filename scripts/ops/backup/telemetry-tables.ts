import { createReadStream } from "node:fs";
import { join } from "node:path";
import { Readable } from "node:stream";
import * as z from "zod";
import type { StoresConfig } from "../../../src/env.ts";
import { UserError } from "../../../src/programs/shared/cli.ts";
import { applyDdl, ddlFiles, onClusterOf } from "../../../src/programs/stack/migrations.ts";
import { writeLines } from "./backup-files.ts";
import { ask, askRows, command } from "./clickhouse-files.ts";
import type { Manifest, TableFile } from "./manifest.ts";

/**
 * The telemetry in a backup: of each table every row, straight out of it and straight into it. Nothing goes through the samples'
 * table, whose views would add everything up once more.
 */

type Telemetry = Manifest["telemetry"];

/** Tab-separated lines with an end that tells a whole answer from one that was cut off; read again, it is asked for. */
const LINES = {
  format_custom_escaping_rule: "Escaped",
  format_custom_field_delimiter: "\t",
  format_custom_row_after_delimiter: "\n",
  format_custom_result_after_delimiter: "\\.\n",
};
const END = Buffer.from(LINES.format_custom_result_after_delimiter);

const READING = {
  ...LINES,
  enable_http_compression: 1,
  // Rows that belong together are put together on the way out: each partition by itself, which its key allows.
  do_not_merge_across_partitions_select_final: 1,
  // The service needs the others.
  max_threads: 2,
};

const WRITING = {
  ...LINES,
  // The quick way of reading a number is off by a bit now and then.
  precise_float_parsing: 1,
  max_partitions_per_insert_block: 0,
  // Two blocks of the same sums are two blocks.
  insert_deduplicate: 0,
  distributed_foreground_insert: 1,
};

const Columns = z.array(z.object({ table: z.string(), columns: z.array(z.string()) }));
const Applied = z.array(z.object({ name: z.string(), hash: z.string() }));
const Counted = z.tuple([z.object({ n: z.coerce.number() })]);
const Named = z.array(z.object({ name: z.string() }));

/** How far before the moment of the backup times of samples lie that were committed right then. */
const CUT_MINUTES = 15;

const formOf = ({ CLICKHOUSE_CLUSTER }: StoresConfig): Telemetry["form"] =>
  CLICKHOUSE_CLUSTER === undefined ? "one server" : "cluster";

export async function dumpTelemetry(config: StoresConfig, folder: string, signal: AbortSignal): Promise<Telemetry> {
  const migrations = await askRows(config, Applied, "SELECT DISTINCT name, hash FROM schema_migrations ORDER BY name");
  const tables = await askRows(
    config,
    Columns,
    `SELECT table, groupArray(name) AS columns FROM (SELECT table, name FROM system.columns WHERE database = currentDatabase() ORDER BY table, position)
     WHERE table IN (SELECT name FROM system.tables WHERE database = currentDatabase() AND match(name, '_v[0-9]+$') AND NOT startsWith(name, 'samples')
       AND ${config.CLICKHOUSE_CLUSTER === undefined ? "engine LIKE '%MergeTree'" : "engine = 'Distributed'"})
     GROUP BY table ORDER BY match(table, '^(points|texts)_'), table`,
  );
  // All questions are put at once and each is answered as of then, however long reading takes; the sums a moment before the values that
  // they are of, so that what is committed in between is lacking in the sums alone, and can be added (`levelCut`).
  const answers: { table: string; columns: string[]; lines: AsyncIterable<Uint8Array> }[] = [];
  for (const { table, columns } of tables) {
    const query = `SELECT ${columns.join(", ")} FROM ${table} FINAL FORMAT CustomSeparated`;
    answers.push({ table, columns, lines: whole(table, await ask(config, query, { settings: READING, signal })) });
  }
  const files = await Promise.all(
    answers.map(async ({ table, columns, lines }): Promise<TableFile> => {
      const { lines: count, ...file } = await writeLines(folder, `telemetry/${table}.tsv.zst`, lines, signal);
      return { table, columns, rows: count - 1, ...file };
    }),
  );
  return { form: formOf(config), migrations, tables: files };
}

/** ClickHouse may fail in the middle of an answer that began well. */
async function* whole(table: string, { body }: Response): AsyncGenerator<Uint8Array> {
  let end = Buffer.alloc(0);
  for await (const piece of body ?? []) {
    end = Buffer.concat([end, piece.subarray(-END.length)]).subarray(-END.length);
    yield piece;
  }
  if (!end.equals(END)) throw new UserError(`ClickHouse's answer about ${table} was cut off.`);
}

/** Refuses what a later version of the product made, and what cannot be brought into the other form. */
export function checkTelemetryLevel(config: StoresConfig, { form, migrations }: Telemetry): void {
  const known = new Map(ddlFiles(form === "cluster" ? form : undefined).map(({ name, hash }) => [name, hash]));
  if (!migrations.every(({ name, hash }) => known.get(name) === hash))
    throw new UserError(
      "The backup has migrations of the telemetry that this version does not know. Use the version that made it, or a later one.",
    );
  if (form !== formOf(config) && migrations.length !== known.size)
    throw new UserError(
      `The backup is of ${form}, and of an earlier version: it can go into another form only when it is up to date.`,
    );
}

/** What there is of telemetry already, by the names that this product gives. */
export async function presentTelemetry(config: StoresConfig): Promise<{ tables: string[]; isEmpty: boolean }> {
  const database = `'${config.CLICKHOUSE_DATABASE}'`;
  const found = await askRows(
    { ...config, CLICKHOUSE_DATABASE: "system" },
    Named,
    `SELECT name FROM system.tables WHERE database = ${database}
     AND (match(name, '^(samples|points|texts|minutes|metrics|agents)(_local|_mv)?_v[0-9]+$|^(points|texts)_weeks(_local)?$')
       OR name = 'schema_migrations')
     ORDER BY engine != 'MaterializedView', engine != 'Distributed'`,
  );
  const tables = found.map(({ name }) => name);
  for (const table of tables.filter((name) => /^(points|texts|minutes|agents)_v\d+$/.test(name))) {
    const [{ n }] = await askRows(config, Counted, `SELECT count() AS n FROM (SELECT 1 FROM ${table} LIMIT 1)`);
    if (n > 0) return { tables, isEmpty: false };
  }
  return { tables, isEmpty: true };
}

export async function loadTelemetry(
  config: StoresConfig,
  folder: string,
  { form, migrations, tables }: Telemetry,
  present: readonly string[],
  { startedAt, signal, onTable }: { startedAt: string; signal: AbortSignal; onTable: (file: TableFile) => void },
): Promise<void> {
  const cluster = config.CLICKHOUSE_CLUSTER;
  const onCluster = onClusterOf(config);
  for (const table of present) await command(config, `DROP TABLE IF EXISTS ${table} ${onCluster} SYNC`, { signal });
  const level = new Set(migrations.map(({ name }) => name));
  await applyDdl(config, ({ name }) => form !== formOf(config) || level.has(name));
  for (const table of tables) {
    // What has outlived its time meanwhile must not go while it is being counted. Whoever migrates sets the time again.
    const stored = cluster === undefined ? table.table : table.table.replace(/_v(\d+)$/, "_local_v$1");
    if (await hasTtl(config, stored))
      await command(config, `ALTER TABLE ${stored} ${onCluster} REMOVE TTL`, { signal });
    const query = `INSERT INTO ${table.table} (${table.columns.join(", ")}) FORMAT CustomSeparated`;
    const body = Readable.toWeb(createReadStream(join(folder, table.file)));
    await command(config, query, { settings: WRITING, signal, body, encoding: "zstd" });
    const [{ n }] = await askRows(config, Counted, `SELECT count() AS n FROM ${table.table} FINAL`);
    if (n !== table.rows)
      throw new UserError(`${table.table} has ${n} rows after the restore, and had ${table.rows} in the backup.`);
    onTable(table);
  }
  if (tables.some(({ table }) => table === "minutes_v1")) await levelCut(config, startedAt);
}

async function hasTtl(config: StoresConfig, table: string): Promise<boolean> {
  const query = `SELECT count() AS n FROM system.tables WHERE database = currentDatabase() AND name = '${table}' AND engine_full LIKE '%TTL %'`;
  const [{ n }] = await askRows(config, Counted, query);
  return n > 0;
}

/** Adds to the sums and to the times that agents were last seen what was committed while the backup put its questions. */
async function levelCut(config: StoresConfig, startedAt: string): Promise<void> {
  const fromS = Math.floor(Date.parse(startedAt) / 60_000 - CUT_MINUTES) * 60;
  await command(
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
    { settings: WRITING },
  );
  for (const table of ["points_v1", "texts_v1"])
    await command(
      config,
      `INSERT INTO agents_v1 (ap_id, last_seen) SELECT ap_id, max(ts) FROM ${table} WHERE ts >= toDateTime64(${fromS}, 3, 'UTC') GROUP BY ap_id`,
      { settings: WRITING },
    );
}
