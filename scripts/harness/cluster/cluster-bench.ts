import { join } from "node:path";
import { print } from "../../../src/programs/shared/cli.ts";
import { bridgeComponent } from "../../../src/programs/stack/components/bridge-process.ts";
import { newClickHouseAccess } from "../../../src/programs/stack/components/clickhouse-access.ts";
import { Supervisor } from "../../../src/programs/stack/supervisor.ts";
import { makeAgents } from "../accounts.ts";
import { publishThroughBridge, startSink } from "../bench/mqtt-load.ts";
import { type BenchContext, fields, load } from "../bench/suite.ts";
import { startRedisBrokers } from "../brokers/redis-brokers.ts";
import { hasRedis } from "../brokers/redis-server.ts";
import { Product } from "../product.ts";
import { UPDATE_PATH } from "../telemetry-oracle.ts";
import { cpuOf, residentMib } from "../usage.ts";
import { ShardCluster } from "./shard-cluster.ts";

/** The CPU time of the same work with one and with two ClickHouse shards, and with one and with two brokers. */

const NODES = [1, 2];
const REPORTING = 500;
const PUBLISHING = 50;

export async function benchCluster(context: BenchContext): Promise<void> {
  for (const shards of NODES) await measureShards(context, shards);
  if (!hasRedis) print("Skipped the brokers: this needs Debian's package redis-server.");
  else for (const brokers of NODES) await measureBrokers(context, brokers);
}

/** Every agent reports once a second, as in operation: the cost of an insert does not depend on the number of reports in it. */
async function measureShards(context: BenchContext, shards: number): Promise<void> {
  const { signal, report } = context;
  const [folder, access] = [join(context.folder, `shards-${shards}`), newClickHouseAccess()];
  const cluster = await ShardCluster.start({ dataDir: folder, shards, access, databases: ["controller"] });
  context.atEnd(() => cluster.stop());
  const settings = { ...cluster.settings(access.owner), LOG_REQUESTS: "failures" };
  const product = await Product.run("start", join(folder, "data"), settings, { signal });
  context.atEnd(() => product.interrupt());
  const agents = await makeAgents(product.dataDir, "bench-shards", context.isQuick ? 50 : REPORTING);
  const next = (connection: number, i: number) => {
    const body = JSON.stringify({ ts: Date.now(), payload: fields("field", i) });
    return { path: UPDATE_PATH, token: agents[connection]?.token, body };
  };
  const paced = { url: product.url, connections: agents.length, pacePerSecond: agents.length };
  // The first request with a token costs more, since the service looks up its account.
  await load(context, next, paced);
  const nodes = Array.from({ length: shards }, (_, node) => `shard ${node + 1}`);
  const pidOf = (name: string) => (name === "worker" ? product.pidOf(name) : cluster.pidOf(nodes.indexOf(name)));
  const processes = { pidOf };
  const { perSecond, details } = await load(context, next, { ...paced, processes, components: ["worker", ...nodes] });
  const memory = nodes.map((node) => [`MiB of ${node}`, residentMib(pidOf(node))]);
  const what = `ingest over HTTP, ${agents.length} agents, each once a second; ClickHouse shards: ${shards}`;
  report.add(what, perSecond, "samples/s", { ...details, ...Object.fromEntries(memory) });
  await product.interrupt();
  await cluster.stop();
}

/** A bridge with no store behind it: what the store costs does not depend on the brokers. */
async function measureBrokers(context: BenchContext, count: number): Promise<void> {
  const { product, client, report, seconds, isQuick } = context;
  const agents = await makeAgents(product.dataDir, `bench-brokers-${count}`, PUBLISHING);
  const supervisor = new Supervisor();
  context.atEnd(() => supervisor.stop());
  const place = { folder: join(context.folder, `brokers-${count}`), supervisor, serviceUrl: product.url };
  const brokers = await startRedisBrokers(place, count);
  const sink = await startSink(client);
  context.atEnd(async () => sink.close());
  const mqttUrls = brokers.map(({ url }) => url);
  const apiKey = product.secret("BRIDGE_KEY");
  await supervisor.start(bridgeComponent({ serviceUrl: sink.url, mqttUrl: mqttUrls.join(), apiKey }));
  const names = brokers.map(({ component }) => component.name);
  const cpuPer = cpuOf({ pidOf: (name) => supervisor.pids[name] ?? 0 }, ["redis", ...names, "bridge"]);
  const samples = Math.round((isQuick ? 100 : 1_000) * seconds);
  const perSecond = await publishThroughBridge({ mqttUrls, agents, count: samples, arrived: () => sink.received });
  report.add(`MQTT to a bridge, QoS 1; brokers with Redis: ${count}`, perSecond, "samples/s", cpuPer(samples));
  sink.close();
  await supervisor.stop();
}
