import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, inject, it } from "vitest";
import * as z from "zod";
import { execute, queryRows, sendQuery } from "../../scripts/ops/backup/clickhouse-http.ts";
import { parseStoresEnv, type StoresConfig } from "../../src/env.ts";
import { clickhouseSettings } from "../../src/programs/stack/components/clickhouse-access.ts";
import { sqldComponent } from "../../src/programs/stack/components/sqld.ts";
import { ACCOUNTS_FOLDER } from "../../src/programs/stack/migrations.ts";
import { isDestructive } from "../../src/programs/stack/pending-migrations.ts";
import { anyFreePort } from "../../src/programs/stack/ports.ts";
import { Supervisor } from "../../src/programs/stack/supervisor.ts";
import { ddlFiles } from "../../src/programs/telemetry-store/ddl.ts";
import { applyDdl, applyStatements, migrateTelemetry } from "../../src/programs/telemetry-store/migrate.ts";
import { copyImage } from "../support/database-image.ts";
import { runScript } from "../support/run-script.ts";

const folder = mkdtempSync(join(tmpdir(), "controller-migrations-"));
const supervisor = new Supervisor();
let stores: Record<string, string>;
let config: StoresConfig;

beforeAll(async () => {
  const sqld = await anyFreePort();
  copyImage(inject("databaseImage"), folder);
  await supervisor.start(sqldComponent(folder, sqld));
  stores = {
    LIBSQL_URL: `http://127.0.0.1:${sqld}`,
    ...clickhouseSettings(inject("clickhouseUrl"), inject("clickhouseAccess").owner),
    CLICKHOUSE_DATABASE: "migrated",
  };
  config = parseStoresEnv(stores);
});
afterAll(async () => {
  await supervisor.stop();
  rmSync(folder, { recursive: true, force: true });
});

const migrate = (...args: string[]) => runScript("migrate", args, stores);
const Counted = z.tuple([z.object({ n: z.coerce.number() })]);
const count = async (table: string): Promise<number> =>
  (await queryRows(config, Counted, `SELECT count() AS n FROM ${table} FINAL`))[0].n;
const send = (apId: string) =>
  execute(
    config,
    `INSERT INTO samples_v1 (ap_id, ts, metrics, texts) SELECT '${apId}', now64(3), map('a', 1, 'b', 2), map('t', 'x')`,
  );
/** The query of versions before 0003. */
const metricsOfPreviousVersion = async (apId: string): Promise<string> =>
  await (
    await sendQuery(config, `SELECT metric FROM metrics_v1 WHERE ap_id = '${apId}' ORDER BY metric FORMAT CSV`)
  ).text();

describe("migrations of the telemetry", () => {
  it("keep the tables of the previous version until --after-deploy, and keep all data", async () => {
    await applyDdl(config, ({ name }) => name < "0003");
    await send("ap-1");
    expect(await metricsOfPreviousVersion("ap-1")).toBe('"a"\n"b"\n');

    expect((await migrate()).output).toContain("--after-deploy applies 0003_no_catalogue.sql, 0005_weeks.sql.");
    await send("ap-2");
    expect(await metricsOfPreviousVersion("ap-2")).toBe('"a"\n"b"\n');

    expect((await migrate("--after-deploy")).output).toContain("ClickHouse is up to date.");
    await expect(metricsOfPreviousVersion("ap-1")).rejects.toThrow("metrics_v1");
    await send("ap-3");
    expect([await count("points_v1"), await count("minutes_v1"), await count("texts_v1")]).toEqual([6, 6, 3]);
    expect(await count("network_minutes_v1")).toBe(6);
  });

  it("repartition by week while samples arrive, keep every value, and can be run again after a crash", async () => {
    const weekly: StoresConfig = { ...config, CLICKHOUSE_DATABASE: "repartitioned", TELEMETRY_DAYS: 60 };
    const insert = (apId: string, days: number) =>
      execute(
        weekly,
        `INSERT INTO samples_v1 (ap_id, ts, metrics, texts)
         SELECT '${apId}', now64(3) - toIntervalDay(number), map('a', number), map('t', 'x') FROM numbers(${days})`,
        { settings: { max_partitions_per_insert_block: 0 } },
      );
    const rowsOf = async (table: string) =>
      (await queryRows(weekly, Counted, `SELECT count() AS n FROM ${table} FINAL`))[0].n;
    await migrateTelemetry(weekly, ({ name }) => name < "0005");
    await insert("ap-1", 9);
    // The pause waits for inserts in progress. This test has none.
    const weeks = ddlFiles(undefined)
      .filter(({ name }) => name.startsWith("0005"))
      .map((file) => ({ ...file, sql: file.sql.replace("sleep(3)", "sleep(0)") }));
    expect(weeks.flatMap(({ sql }) => sql.match(/;$/gm) ?? [])).toHaveLength(11);
    // Interrupted during the copy, before the exchanges, between them, after them, and after the last statement. Samples arrive after each
    // range: also between the copy of a table and its exchange, and between the two exchanges.
    const ranges = ["0-3", "0-4", "4-5", "0-5", "5-6", "0-11"].map((range) => range.split("-").map(Number));
    let expected = 9;
    for (const [i, [from, to]] of ranges.entries()) {
      const statements = weeks.map((file) => ({ ...file, sql: file.sql.split(/;$/m).slice(from, to).join(";\n") }));
      const before = await rowsOf("points_v1");
      await applyStatements(weekly, statements);
      // A second run hides nothing that could be read before it.
      if (from === 0) expect(await rowsOf("points_v1")).toBeGreaterThanOrEqual(before);
      await insert(`range-${i}`, i + 1);
      expected += i + 1;
    }
    await migrateTelemetry(weekly);
    await insert("ap-2", 1);
    expected++;
    expect([await rowsOf("points_v1"), await rowsOf("texts_v1")]).toEqual([expected, expected]);
    const Tables = z.array(z.object({ name: z.string(), partition_key: z.string(), engine_full: z.string() }));
    const tables = await queryRows(
      weekly,
      Tables,
      `SELECT name, partition_key, engine_full FROM system.tables WHERE database = 'repartitioned' AND match(name, '^(points|texts)_[^m]') ORDER BY name`,
    );
    expect(tables.map(({ name, partition_key }) => [name, partition_key])).toEqual([
      ["points_v1", "toMonday(ts)"],
      ["texts_v1", "toMonday(ts)"],
    ]);
    for (const { engine_full } of tables) expect(engine_full).toContain("toIntervalDay(60)");
  });

  it("copy the rollup into the order of metrics while samples arrive, each once, and can be run again after a crash", async () => {
    const network: StoresConfig = { ...config, CLICKHOUSE_DATABASE: "network" };
    const insert = (apId: string, days: number) =>
      execute(
        network,
        `INSERT INTO samples_v1 (ap_id, ts, metrics)
         SELECT '${apId}', toDateTime64('${new Date().toISOString().slice(0, 19)}', 3, 'UTC') - toIntervalDay(number % ${days}) - number,
           map('a', number, 'b', 1) FROM numbers(100)`,
        {
          settings: {
            max_partitions_per_insert_block: 0,
            insert_deduplication_token: apId,
            deduplicate_blocks_in_dependent_materialized_views: 1,
          },
        },
      );
    const sumsOf = async (table: string, agent: string) =>
      await (
        await sendQuery(
          network,
          `SELECT ${agent} AS agent, metric, toUnixTimestamp(minute) AS at, sum(n), sum(total) FROM ${table}
           GROUP BY agent, metric, at ORDER BY agent, metric, at FORMAT TSV`,
        )
      ).text();
    await migrateTelemetry(network, ({ name }) => name < "0006");
    await insert("ap-1", 40);
    const files = ddlFiles(undefined)
      .filter(({ name }) => name.startsWith("0006"))
      .map((file) => ({ ...file, sql: file.sql.replace("sleep(3)", "sleep(0)") }));
    // Interrupted before the view, before the copy and after it. Samples arrive in between.
    for (const [i, end] of [1, 2, 3, 4].entries()) {
      await applyStatements(
        network,
        files.map((file) => ({ ...file, sql: file.sql.split(/;$/m).slice(0, end).join(";\n") })),
      );
      await insert(`ap-${i + 2}`, 3);
    }
    await migrateTelemetry(network);
    // A batch with an unknown outcome is sent again.
    for (let i = 0; i < 2; i++) await insert("ap-again", 3);
    const expected = await sumsOf("minutes_v1", "sipHash64(ap_id)");
    expect(expected.split("\n").length).toBeGreaterThan(100);
    expect(await sumsOf("network_minutes_v1", "agent")).toBe(expected);
    const again = "SELECT sum(n) AS n FROM network_minutes_v1 WHERE agent = sipHash64('ap-again')";
    expect(await queryRows(network, Counted, again)).toEqual([{ n: 200 }]);
  });

  it("take the time of receipt of an agent from its newest sample until it reports again", async () => {
    const received: StoresConfig = { ...config, CLICKHOUSE_DATABASE: "received" };
    const Times = z.array(z.object({ ap_id: z.string(), seen: z.coerce.number(), received: z.coerce.number() }));
    const timesOf = async () =>
      await queryRows(
        received,
        Times,
        `SELECT ap_id, toUnixTimestamp64Milli(max(last_seen)) AS seen, toUnixTimestamp64Milli(max(last_received)) AS received
         FROM agents_v1 GROUP BY ap_id ORDER BY ap_id`,
      );
    const insert = (apId: string) =>
      execute(received, `INSERT INTO samples_v1 (ap_id, ts, metrics) SELECT '${apId}', now64(3) - 3600, map('a', 1)`);
    await applyDdl(received, ({ name }) => name < "0004");
    await insert("ap-1");
    await migrateTelemetry(received, ({ name }) => name < "0005");
    expect((await timesOf()).map(({ seen, received }) => received - seen)).toEqual([0]);
    // A Worker of the previous version inserts like this.
    for (const apId of ["ap-1", "ap-2"]) await insert(apId);
    for (const { seen, received } of await timesOf()) expect(Math.abs(received - seen - 3_600_000)).toBeLessThan(1_000);
  });

  it.each([undefined, "cluster"])("have consecutive numbers (%s)", (cluster) => {
    const numbers = ddlFiles(cluster).map(({ name }) => name.replace("cluster/", "").slice(0, 4));
    expect(numbers).toEqual(numbers.map((_, i) => String(i + 1).padStart(4, "0")));
  });
});

describe("migrations of the accounts", () => {
  // They run while the previous version is in service. A later version removes what is no longer used.
  it.each(readdirSync(ACCOUNTS_FOLDER).filter((file) => file.endsWith(".sql")))("are not destructive: %s", (file) => {
    expect(isDestructive(readFileSync(join(ACCOUNTS_FOLDER, file), "utf8"))).toBe(false);
  });
});
