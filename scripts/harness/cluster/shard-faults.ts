import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { cityHash64 } from "../../../src/lib/city-hash.ts";
import { print } from "../../../src/programs/shared/cli.ts";
import { unlessAborted } from "../../../src/programs/shared/interruption.ts";
import { newClickHouseAccess, withLogin } from "../../../src/programs/stack/components/clickhouse-access.ts";
import { makeAgents, makeUser, type TestAgent } from "../accounts.ts";
import { ApiClient, type Target } from "../client.ts";
import type { FaultTarget } from "../faults/environment.ts";
import { startReads } from "../faults/kill-loop.ts";
import { type Row, runRows } from "../faults/matrix.ts";
import { type Fault, killUntilBack, underLoad } from "../faults/under-load.ts";
import { Product } from "../product.ts";
import { METRIC, sendTelemetry, startTelemetry } from "../telemetry-oracle.ts";
import type { Workload } from "../workload.ts";
import { ShardCluster } from "./shard-cluster.ts";

/** Kills the shards of a ClickHouse cluster while agents report and users read. */

const SHARDS = 2;
const AGENTS = 8;
const PAUSE_MS = 20;
const READ_PAUSE_MS = 500;

interface ShardEnvironment extends FaultTarget {
  cluster: ShardCluster;
}

/** Runs the product on a cluster of shards, in a temporary folder. */
async function withShards(
  { signal }: { signal: AbortSignal },
  work: (environment: ShardEnvironment) => Promise<void>,
): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), "controller-shard-faults-"));
  const [dataDir, access] = [join(folder, "data"), newClickHouseAccess()];
  let cluster: ShardCluster | undefined;
  let product: Product | undefined;
  try {
    const starting = ShardCluster.start({ dataDir: folder, shards: SHARDS, access, databases: ["controller"] });
    cluster = await unlessAborted(starting, signal);
    const settings = { ...cluster.settings(access.owner), LOG_REQUESTS: "failures" };
    const running = await Product.run("start", dataDir, settings, { signal });
    product = running;
    const urls = { ...running.urls, clickhouse: withLogin(cluster.urls[0] ?? "", access.owner) };
    await work({
      product: running,
      cluster,
      target: () => ({ client: new ApiClient(running.url), dataDir, urls }),
      pidOf: (component) => running.pidOf(component),
    });
  } finally {
    await product?.interrupt();
    await cluster?.stop();
    rmSync(folder, { recursive: true, force: true });
  }
}

export interface ShardFaultsOptions {
  /** How often each shard is killed. */
  kills?: number | undefined;
  /** Only rows whose names match. */
  pattern: RegExp;
  jsonFile: string | undefined;
  signal: AbortSignal;
  /** Prints the rows instead. */
  isList: boolean;
}

/** Runs the product on shards and kills each. Returns whether every guarantee was kept. */
export async function runShardFaults(options: ShardFaultsOptions): Promise<boolean> {
  const { kills = 10, pattern, jsonFile, signal, isList } = options;
  const rows = rowsFor(kills).filter(({ name }) => pattern.test(name));
  if (isList) print(rows.map(({ name }) => name).join("\n"));
  return isList || rows.length === 0 || (await runRows(rows, withShards, jsonFile, signal));
}

const rowsFor = (times: number): Row<ShardEnvironment>[] =>
  Array.from({ length: SHARDS }, (_, shard) => ({
    name: `kill ClickHouse shard ${shard + 1} ${times} times`,
    run: (at, signal) => underLoad(at, killShard(at.cluster, shard), { signal, times, start: startWorkloads }),
  }));

const killShard = (cluster: ShardCluster, shard: number): Fault =>
  killUntilBack(() => {
    const pid = cluster.pidOf(shard);
    process.kill(pid, "SIGKILL");
    return async () => cluster.pidOf(shard) !== pid && (await cluster.isReady());
  });

/** Returns an agent of a shard. Of eight agents, none is on a shard with a chance of 1 in 256; then any will do. */
function agentOn(shard: number, agents: readonly TestAgent[]): TestAgent {
  const found = agents.find(({ apId }) => cityHash64(apId) % BigInt(SHARDS) === BigInt(shard)) ?? agents[0];
  if (found === undefined) throw new Error("There are no agents");
  return found;
}

/** Agents of both shards report. Each report over HTTP is accepted, and no list, overview or chart fails. */
async function startWorkloads(target: Target): Promise<Workload[]> {
  const prefix = `shards-http-${Date.now()}`;
  const agents = await makeAgents(target.dataDir, prefix, AGENTS);
  const { token } = await makeUser(target.dataDir, `${prefix}@example.com`, undefined, ["admin"]);
  const chartOf = ({ apId }: TestAgent) =>
    `/api/v1/metrics/agent_multi_metric_data?agent=${apId}&metrics=${METRIC}&window=1h`;
  const reads = {
    overview: "/api/v1/overview",
    agents: "/api/v1/agents/",
    ...Object.fromEntries(
      Array.from({ length: SHARDS }, (_, shard) => [`chart on shard ${shard + 1}`, chartOf(agentOn(shard, agents))]),
    ),
  };
  return [
    sendTelemetry(target, agents, { prefix, channel: "HTTP", pauseMs: PAUSE_MS, isEachAccepted: true }),
    await startTelemetry(target, { prefix: "shards", agents: AGENTS, pauseMs: PAUSE_MS, channel: "MQTT" }),
    ...Object.entries(reads).map(([name, path]) => startReads(target, { name, token, path, pauseMs: READ_PAUSE_MS })),
  ];
}
