import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, inject, it } from "vitest";
import * as z from "zod";
import { ask, askRows, command } from "../../scripts/backup/clickhouse.ts";
import { clickhouseSettings } from "../../scripts/stack/clickhouse-access.ts";
import { ACCOUNTS_FOLDER, applyDdl, ddlFiles } from "../../scripts/stack/migrations.ts";
import { takesAway } from "../../scripts/stack/pending-migrations.ts";
import { anyFreePort } from "../../scripts/stack/ports.ts";
import { sqldPart } from "../../scripts/stack/sqld.ts";
import { Supervisor } from "../../scripts/stack/supervisor.ts";
import { parseStoresEnv, type StoresConfig } from "../../src/env.ts";
import { runScript } from "../support/run-script.ts";

const folder = mkdtempSync(join(tmpdir(), "controller-migrations-"));
const supervisor = new Supervisor();
let stores: Record<string, string>;
let config: StoresConfig;

beforeAll(async () => {
  const sqld = await anyFreePort();
  await supervisor.start(sqldPart(folder, sqld));
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
  (await askRows(config, Counted, `SELECT count() AS n FROM ${table} FINAL`))[0].n;
const send = (apId: string) =>
  command(config, `INSERT INTO samples_v1 SELECT '${apId}', now64(3), map('a', 1, 'b', 2), map('t', 'x')`);
/** What the version before 0003 asked. */
const metricsAsFormerly = async (apId: string): Promise<string> =>
  await (await ask(config, `SELECT metric FROM metrics_v1 WHERE ap_id = '${apId}' ORDER BY metric FORMAT CSV`)).text();

describe("migrations of the telemetry", () => {
  it("leave what the version before uses until it is out of service, and keep what is stored", async () => {
    await applyDdl(config, ({ name }) => name < "0003");
    await send("ap-1");
    expect(await metricsAsFormerly("ap-1")).toBe('"a"\n"b"\n');

    expect((await migrate()).output).toContain("--after-deploy applies 0003_no_catalogue.sql.");
    await send("ap-2");
    expect(await metricsAsFormerly("ap-2")).toBe('"a"\n"b"\n');

    expect((await migrate("--after-deploy")).output).toContain("ClickHouse is up to date.");
    await expect(metricsAsFormerly("ap-1")).rejects.toThrow("metrics_v1");
    await send("ap-3");
    expect([await count("points_v1"), await count("minutes_v1"), await count("texts_v1")]).toEqual([6, 6, 3]);
  });

  it.each([undefined, "cluster"])("have a number of their own each (%s)", (cluster) => {
    const numbers = ddlFiles(cluster).map(({ name }) => name.replace("cluster/", "").slice(0, 4));
    expect(numbers).toEqual(numbers.map((_, i) => String(i + 1).padStart(4, "0")));
  });
});

describe("migrations of the accounts", () => {
  // They are applied while the version before is in service; what nobody uses any more goes with a later version.
  it.each(readdirSync(ACCOUNTS_FOLDER).filter((file) => file.endsWith(".sql")))("take nothing away: %s", (file) => {
    expect(takesAway(readFileSync(join(ACCOUNTS_FOLDER, file), "utf8"))).toBe(false);
  });
});
