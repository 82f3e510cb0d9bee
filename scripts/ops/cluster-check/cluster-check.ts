import { createInterface, type Interface } from "node:readline/promises";
import { setTimeout as sleep } from "node:timers/promises";
import { parseStoresEnv, type StoresConfig } from "../../../src/env.ts";
import { describeError } from "../../../src/lib/log.ts";
import { bold, print, red, UserError } from "../../../src/programs/shared/cli.ts";
import { unlessAborted } from "../../../src/programs/shared/interruption.ts";
import { readShards } from "../../../src/programs/telemetry-store/check-cluster.ts";
import { onClusterOf } from "../../../src/programs/telemetry-store/ddl.ts";
import { migrateTelemetry } from "../../../src/programs/telemetry-store/migrate.ts";
import { nodesOf, openClient } from "../../../src/programs/telemetry-store/nodes.ts";
import { CheckWriter } from "./check-writer.ts";
import { type Comparison, compareNodes } from "./node-contents.ts";

export interface ClusterCheckOptions {
  seconds: number;
  hasKills: boolean;
  signal: AbortSignal;
}

/** After a node has started, its replicas get this time to copy what it missed. */
const SETTLED_WITHIN_MS = 120_000;
const POLL_MS = 1_000;

/** Runs the check. Returns whether the cluster has kept everything that it acknowledged, once. */
export async function runClusterCheck(env: NodeJS.ProcessEnv, options: ClusterCheckOptions): Promise<boolean> {
  const config = checkedConfig(parseStoresEnv({ LIBSQL_URL: "http://127.0.0.1", ...env }));
  const shards = await shardCount(config);
  const input = createInterface({ input: process.stdin, output: process.stdout });
  const writer = new CheckWriter(config, shards);
  try {
    await dropDatabase(config);
    await migrateTelemetry(config);
    const check = checkAll(config, shards, writer, input, options);
    // Ends before the check only with an error.
    const writing = writer.start().then(() => check);
    return await unlessAborted(Promise.race([check, writing]), options.signal);
  } finally {
    input.close();
    await writer.stop();
    await dropDatabase(config).catch((error: unknown) => {
      print(red(`Drop the database ${config.CLICKHOUSE_DATABASE} yourself: ${describeError(error)}`));
    });
  }
}

/** Returns the settings for the check's own database. */
function checkedConfig(config: StoresConfig): StoresConfig {
  if (config.CLICKHOUSE_CLUSTER === undefined)
    throw new UserError("Set CLICKHOUSE_CLUSTER to the name of the cluster.");
  return { ...config, CLICKHOUSE_DATABASE: `${config.CLICKHOUSE_DATABASE}_check` };
}

async function shardCount(config: StoresConfig): Promise<number> {
  const { CLICKHOUSE_CLUSTER: cluster = "" } = config;
  const shards = await readShards(config, cluster);
  if (shards === undefined) throw new UserError("This login may not read system.clusters.");
  const nodes = shards.reduce((sum, { replicas }) => sum + replicas, 0);
  const addresses = config.CLICKHOUSE_URL.length;
  if (addresses !== nodes)
    throw new UserError(
      `CLICKHOUSE_URL has ${addresses} addresses, but the cluster "${cluster}" has ${nodes} nodes. Name each of them.`,
    );
  print(`The cluster ${cluster} has ${shards.length} shards and ${nodes} nodes.`);
  return shards.length;
}

async function dropDatabase(config: StoresConfig): Promise<void> {
  for (const url of (await nodesOf(config)).flatMap((node) => node.CLICKHOUSE_URL)) {
    const client = openClient(config, url);
    try {
      await client.command({
        query: `DROP DATABASE IF EXISTS {database:Identifier} ${onClusterOf(config)} SYNC`,
        query_params: { database: config.CLICKHOUSE_DATABASE },
        // A node that is down drops it when it is back.
        clickhouse_settings: {
          distributed_ddl_task_timeout: "30",
          distributed_ddl_output_mode: "null_status_on_timeout",
        },
      });
    } finally {
      await client.close();
    }
  }
}

async function checkAll(
  config: StoresConfig,
  shards: number,
  writer: CheckWriter,
  input: Interface,
  { seconds, hasKills, signal }: ClusterCheckOptions,
): Promise<boolean> {
  const ended = new Promise<never>((_, reject) =>
    input.once("close", () => reject(new UserError("The input has ended."))),
  );
  ended.catch(() => {});
  const ask = (text: string) => Promise.race([input.question(`${bold(text)} Then press Enter. `, { signal }), ended]);
  const write = async () => {
    await sleep(seconds * 1_000, undefined, { signal });
    print(`  ${writer.describe()}`);
  };
  print("Writing to all shards.");
  await write();
  let isKept = await settle(config, shards, writer);
  for (const url of hasKills ? config.CLICKHOUSE_URL : []) {
    const { host } = new URL(url);
    await ask(`Kill ClickHouse on ${host} (kill -9).`);
    await write();
    await ask(`Start ClickHouse on ${host} again.`);
    isKept = (await settle(config, shards, writer)) && isKept;
  }
  print(isKept ? "Everything that was acknowledged is on each node once." : red("The cluster is not as it should be."));
  return isKept;
}

/** Pauses the writer and waits until all nodes have what was acknowledged. Prints the comparison. */
async function settle(config: StoresConfig, shards: number, writer: CheckWriter): Promise<boolean> {
  await writer.pause();
  let result: Comparison = { isEqual: false, lines: [] };
  for (const endMs = Date.now() + SETTLED_WITHIN_MS; !result.isEqual && Date.now() < endMs; await sleep(POLL_MS))
    result = await compareNodes(config, shards, writer.written);
  for (const line of result.lines) print(`  ${line}`);
  const { misses } = writer;
  if (misses > 0) print(red(`  ${misses} writes could not be read after they were acknowledged.`));
  writer.resume();
  return result.isEqual && misses === 0;
}
