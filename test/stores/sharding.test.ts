import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, inject, it } from "vitest";
import * as z from "zod";
import { ShardCluster } from "../../scripts/harness/cluster/shard-cluster.ts";
import { until } from "../../scripts/harness/product.ts";
import { backUp } from "../../scripts/ops/backup/back-up.ts";
import { queryRows } from "../../scripts/ops/backup/clickhouse-http.ts";
import { restore } from "../../scripts/ops/backup/restore.ts";
import { parseStoresEnv, type StoresConfig } from "../../src/env.ts";
import { cityHash64 } from "../../src/lib/city-hash.ts";
import { Unavailable } from "../../src/lib/errors.ts";
import { ROOT } from "../../src/programs/shared/system.ts";
import { clickhouseSettings } from "../../src/programs/stack/components/clickhouse-access.ts";
import { sqldComponent } from "../../src/programs/stack/components/sqld.ts";
import { anyFreePort } from "../../src/programs/stack/ports.ts";
import { Supervisor } from "../../src/programs/stack/supervisor.ts";
import { migrateTelemetry } from "../../src/programs/telemetry-store/migrate.ts";
import { createClickHouse } from "../../src/storage/clickhouse.ts";
import { createExportStore } from "../../src/telemetry/store/export-queries.ts";
import { createTelemetryStore } from "../../src/telemetry/store/telemetry-store.ts";
import { namesOn, SHARDS, sampleOf, shardOfName } from "../support/cluster/shards.ts";
import { copyImage } from "../support/database-image.ts";
import { count, fillTelemetry, telemetryOf } from "../support/filled-stores.ts";

const folder = mkdtempSync(join(tmpdir(), "controller-sharding-"));
const access = inject("clickhouseAccess");
const supervisor = new Supervisor();
let cluster: ShardCluster;
let libsql: string;
/** With the rights of the owner, and of the Worker. */
let owner: StoresConfig;
let worker: StoresConfig;

beforeAll(async () => {
  const port = await anyFreePort();
  libsql = `http://127.0.0.1:${port}`;
  copyImage(inject("databaseImage"), folder);
  const databases = ["controller", "controller_check"];
  [cluster] = await Promise.all([
    ShardCluster.start({ dataDir: folder, shards: SHARDS, access, databases }),
    supervisor.start(sqldComponent(folder, port)),
  ]);
  owner = parseStoresEnv({ LIBSQL_URL: libsql, ...cluster.settings(access.owner) });
  worker = parseStoresEnv({ LIBSQL_URL: libsql, ...cluster.settings(access.worker) });
});
afterAll(async () => {
  await Promise.all([cluster?.stop(), supervisor.stop()]);
  rmSync(folder, { recursive: true, force: true });
});

/** Returns the settings of one node. */
const onNode = (node: number, config = owner): StoresConfig => ({
  ...config,
  CLICKHOUSE_URL: [cluster.urls[node] ?? ""],
});
const storeOf = (config: StoresConfig) => createTelemetryStore(createClickHouse(config));

const Named = z.array(z.object({ name: z.string() }));
const TABLES = ["points", "texts", "minutes", "agents"];
/** How many rows of agents with a prefix each table has on a node. */
const rowsOn = async (node: number, prefix: string): Promise<number[]> =>
  await Promise.all(
    TABLES.map((table) =>
      count(
        onNode(node),
        `SELECT count() AS n FROM ${table}_local_v1 ${table === "agents" ? "FINAL" : ""} WHERE startsWith(ap_id, '${prefix}')`,
      ),
    ),
  );

describe("a cluster of shards without replicas", () => {
  it("is migrated on each node, with plain tables, and changes nothing the second time", async () => {
    const tables = async () =>
      await Promise.all(
        cluster.urls.map((_, node) =>
          queryRows(
            onNode(node),
            z.array(z.record(z.string(), z.unknown())),
            `SELECT name, engine, engine_full, metadata_modification_time FROM system.tables WHERE database = 'controller' ORDER BY name`,
          ),
        ),
      );
    await migrateTelemetry(owner);
    const before = await tables();
    await migrateTelemetry(owner);
    expect(await tables()).toEqual(before);
    const [first = [], second = []] = before.map((node) => node.map(({ name, engine }) => `${name} ${engine}`));
    expect(first).toEqual(second);
    expect(first).toContain("points_local_v1 ReplacingMergeTree");
    expect(first).toContain("points_v1 Distributed");
    expect(first.join()).not.toContain("Replicated");
    for (const { engine, engine_full } of before.flat().filter(({ engine }) => String(engine).endsWith("gMergeTree"))) {
      expect(engine_full, String(engine)).toContain("non_replicated_deduplication_window = 20000");
      expect(engine_full, String(engine)).toContain("min_free_disk_bytes_to_perform_insert = 33554432");
    }
  });

  it("rejects settings that do not fit to the cluster", async () => {
    await expect(migrateTelemetry({ ...owner, CLICKHOUSE_CLUSTER: "other" })).rejects.toThrow('no cluster "other"');
    await expect(migrateTelemetry(onNode(0))).rejects.toThrow('has 1 addresses, but the cluster "shards" has 2 nodes');
  });

  it("has each agent on the shard that the service computes from its name", async () => {
    const names = Array.from({ length: 64 }, (_, i) => `${"routed-x".repeat(8).slice(0, i)}${i % 10}`);
    const Hashes = z.array(z.object({ hash: z.string() }));
    const query = `SELECT toString(cityHash64(arrayJoin(['${names.join("','")}']))) AS hash`;
    const hashes = (await queryRows(onNode(0), Hashes, query)).map(({ hash }) => BigInt(hash));
    expect(hashes).toEqual(names.map(cityHash64));

    const agents = Array.from({ length: 100 }, (_, i) => `routed-${i}`);
    await storeOf(worker).insert(
      agents.map((apId) => sampleOf(apId, Date.now())),
      crypto.randomUUID(),
    );
    for (const node of [0, 1]) {
      const expected = agents.filter((apId) => shardOfName(apId) === node).toSorted();
      for (const table of TABLES) {
        const found = await queryRows(
          onNode(node),
          Named,
          `SELECT DISTINCT ap_id AS name FROM ${table}_local_v1 WHERE match(ap_id, '^routed-[0-9]+$') ORDER BY name`,
        );
        expect(found.map(({ name }) => name)).toEqual(expected);
      }
    }
  });

  it("stores a batch once that is sent three times through both nodes", async () => {
    const agents = [0, 1].flatMap((shard) => namesOn(shard, "repeated", 5));
    const batch = agents.flatMap((apId) =>
      [0, 1, 2].map((i) => sampleOf(apId, 1_000_000 * i + Date.now() - 4_000_000)),
    );
    const token = crypto.randomUUID();
    for (const node of [0, 1, 0]) await storeOf(onNode(node, worker)).insert(batch, token);
    for (const node of [0, 1]) {
      const [points, texts, minutes, known] = await rowsOn(node, "repeated");
      expect([points, texts, minutes, known]).toEqual([15, 15, 15, 5]);
    }
    const sums = `SELECT sum(n) AS n FROM minutes_v1 WHERE startsWith(ap_id, 'repeated')`;
    expect(await count(owner, sums)).toBe(30);
    const names = agents.map((apId) => `sipHash64('${apId}')`).join();
    expect(await count(owner, `SELECT sum(n) AS n FROM network_minutes_v1 WHERE agent IN (${names})`)).toBe(30);
  });

  it("gives a backup that one server can restore, and restores one of a server", async () => {
    await fillTelemetry(owner);
    const [first, second] = [join(folder, "backup-1"), join(folder, "backup-2")];
    const { signal } = new AbortController();
    const secretsFile = join(folder, "secrets.json");
    const single = parseStoresEnv({
      LIBSQL_URL: libsql,
      ...clickhouseSettings(inject("clickhouseUrl"), access.owner),
      CLICKHOUSE_DATABASE: "unsharded",
    });
    await backUp({ config: owner, secretsFile }, first, { signal });
    await restore({ config: single, secretsFile }, first, { replace: true, signal });
    const expected = await telemetryOf(owner);
    expect(await telemetryOf(single)).toEqual(expected);

    await backUp({ config: single, secretsFile }, second, { signal });
    // Replaces the tables on each node.
    await storeOf(worker).insert([sampleOf("not-in-the-backup", Date.now())], crypto.randomUUID());
    await restore({ config: owner, secretsFile }, second, { replace: true, signal });
    expect(await telemetryOf(owner)).toEqual(expected);
    const total = "SELECT sum(n) AS n FROM";
    expect(await count(owner, `${total} network_minutes_v1`)).toBe(await count(owner, `${total} minutes_v1`));
    for (const node of [0, 1]) {
      const query = `SELECT count() AS n FROM points_local_v1 WHERE cityHash64(ap_id) % 2 != ${node}`;
      expect(await count(onNode(node), query)).toBe(0);
    }
  });
});

describe("a shard that is down", () => {
  const nowMs = Date.now();
  const range = { fromMs: nowMs - 86_400_000, toMs: nowMs };
  const [alive = "", dead = ""] = [...namesOn(0, "alive"), ...namesOn(1, "dead")];
  const first = [alive, dead].map((apId) => sampleOf(apId, nowMs - 60_000));
  const token = crypto.randomUUID();

  beforeAll(async () => {
    await storeOf(worker).insert(first, crypto.randomUUID());
    await cluster.kill(1);
  });
  afterAll(() => cluster.revive(1));

  it("does not affect inserts and reads of agents on the other shard", async () => {
    const [store, exports] = [storeOf(worker), createExportStore(createClickHouse(worker))];
    await store.insert([sampleOf(alive, nowMs)], crypto.randomUUID());
    const [apId, apIds, metrics] = [alive, [alive], ["n"]];
    expect(await store.stored([sampleOf(alive, nowMs)])).toHaveLength(1);
    expect(await store.series({ apId, metrics, ...range })).toHaveLength(1);
    // From the rollup, and points of a metric with few of them.
    expect(await store.series({ apId, fromMs: nowMs - 20 * 86_400_000, toMs: nowMs })).toHaveLength(1);
    expect(await store.recent(apId, range.fromMs, 10)).toHaveLength(2);
    expect(await store.strings({ apId, ...range })).toHaveLength(1);
    expect(await store.history({ apId, ...range, of: "numbers", limit: 10 })).toHaveLength(2);
    expect(await store.countHistory({ apId, ...range })).toBe(4);
    expect(await store.lastSeen(apIds)).toEqual(new Map([[alive, nowMs]]));
    expect(await store.newestSamples(apIds)).toEqual(new Map([[alive, nowMs]]));
    expect(await store.metrics(apId, range.fromMs)).toEqual(["n"]);
    await store.hourMeans({ apIds, metric: "n", hourMs: Math.floor(nowMs / 3_600_000) * 3_600_000, days: 1 });
    expect((await exports.series({ apIds, ...range }).next()).value).toHaveLength(1);
    expect(await exports.points([{ apId, metric: "n" }], range)).toHaveLength(1);
    expect(await exports.latest(apIds, range, 10)).toHaveLength(1);
    expect(await exports.count({ apIds, ...range })).toBe(2);
    const file = await new Response(await exports.download({ apIds, ...range }, "csv")).text();
    expect(file.trim().split("\n").length).toBeGreaterThanOrEqual(2);
  });

  it("is an outage for its own agents, in reads and inserts", async () => {
    const store = storeOf(worker);
    await expect(store.insert([sampleOf(dead, nowMs)], token)).rejects.toThrow(Unavailable);
    await expect(store.series({ apId: dead, ...range })).rejects.toThrow(Unavailable);
    await expect(store.newestSamples([alive, dead])).rejects.toThrow(Unavailable);
    await expect(store.lastSeen()).rejects.toThrow(Unavailable);
    // Part of a batch for both shards may have been stored. The same batch is sent again later.
    await expect(
      store.insert([sampleOf(alive, nowMs + 1), sampleOf(dead, nowMs + 1)], `${token}-both`),
    ).rejects.toThrow(Unavailable);
  });

  it("is left out of lists, which say so", async () => {
    const { times, isComplete } = await storeOf(worker).availableLastSeen();
    expect([times.has(alive), times.has(dead), isComplete]).toEqual([true, false, false]);
    const chosen = await storeOf(worker).availableLastSeen([alive, dead]);
    expect([[...chosen.times.keys()], chosen.isComplete]).toEqual([[alive], false]);
    expect((await storeOf(worker).availableLastSeen([alive])).isComplete).toBe(true);
  });

  it("is skipped, whichever address is the first one", async () => {
    const reversed = { ...worker, CLICKHOUSE_URL: cluster.urls.toReversed() };
    const store = storeOf(reversed);
    for (let i = 0; i < 3; i++) expect((await store.newestSamples([alive])).size).toBe(1);
    await store.insert([sampleOf(alive, nowMs + 2)], crypto.randomUUID());
    await createClickHouse(reversed).check();
  });

  it("does not prevent a start, unless a migration is due", async () => {
    await migrateTelemetry(owner);
    await expect(migrateTelemetry({ ...owner, CLICKHOUSE_DATABASE: "controller_check" })).rejects.toThrow(
      /does not respond/,
    );
  });

  it("has everything once when it is back, also what was sent during the outage", async () => {
    await cluster.revive(1);
    const store = storeOf(worker);
    await store.insert([sampleOf(dead, nowMs)], token);
    await store.insert([sampleOf(alive, nowMs + 1), sampleOf(dead, nowMs + 1)], `${token}-both`);
    for (const apId of [alive, dead]) {
      const points = await count(owner, `SELECT count() AS n FROM points_v1 WHERE ap_id = '${apId}'`);
      const sum = await count(owner, `SELECT sum(n) AS n FROM minutes_v1 WHERE ap_id = '${apId}'`);
      // The first agent got one more, through the other address.
      expect([points, sum]).toEqual(apId === alive ? [4, 4] : [3, 3]);
    }
    expect((await store.availableLastSeen()).isComplete).toBe(true);
  });
});

describe("npm run cluster-check", () => {
  const startCheck = (seconds: number) => {
    const child = spawn(process.execPath, ["scripts/ops/cluster-check/command.ts", "--seconds", String(seconds)], {
      cwd: ROOT,
      env: { ...process.env, ...cluster.settings(access.owner), NO_COLOR: "1" },
      stdio: ["pipe", "pipe", "inherit"],
    });
    const check = { child, output: "", says: (text: string) => until(() => check.output.includes(text), 60_000) };
    child.stdout.setEncoding("utf8").on("data", (text) => {
      check.output += text;
    });
    return check;
  };
  const tablesLeft = async () => {
    const query = "SELECT name FROM system.tables WHERE database = 'controller_check'";
    return (await Promise.all([0, 1].map((node) => queryRows(onNode(node), Named, query)))).flat();
  };

  it("finds that the cluster keeps everything, while nodes are killed and started at its request", async () => {
    const check = startCheck(1);
    for (const [node, url] of cluster.urls.entries()) {
      const { host } = new URL(url);
      await check.says(`Kill ClickHouse on ${host}`);
      await cluster.kill(node);
      check.child.stdin.write("\n");
      await check.says(`Start ClickHouse on ${host}`);
      await cluster.revive(node);
      check.child.stdin.write("\n");
    }
    await once(check.child, "exit");
    expect(check.output).toContain("Everything that was acknowledged is on each node once.");
    expect([check.child.exitCode, await tablesLeft()]).toEqual([0, []]);
  });

  it("deletes its database when it is interrupted", async () => {
    const check = startCheck(60);
    await check.says("Writing to all shards.");
    check.child.kill("SIGINT");
    await once(check.child, "exit");
    expect([check.child.exitCode, await tablesLeft()]).toEqual([130, []]);
  });
});
