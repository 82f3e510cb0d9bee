import { join } from "node:path";
import { print } from "../../../src/programs/shared/cli.ts";
import type { Component } from "../../../src/programs/stack/supervisor.ts";
import { hasRabbitmq, rabbitmqCluster } from "../brokers/rabbitmq-server.ts";
import { type BrokerPlace, startRedisBrokers } from "../brokers/redis-brokers.ts";
import { hasRedis } from "../brokers/redis-server.ts";
import { ApiClient, type Target } from "../client.ts";
import { startTelemetry } from "../telemetry-oracle.ts";
import type { Workload } from "../workload.ts";
import { startCommands } from "./command-load.ts";
import { type Row, runMatrix } from "./matrix.ts";
import { type Fault, killUntilBack, underLoad } from "./under-load.ts";

/** Kills the nodes of a broker under load: our own brokers with Redis, and RabbitMQ. */

export interface BrokerNode {
  url: string;
  /** Kills the node, which its supervisor restarts. */
  kill(): void;
  isReady(): Promise<boolean>;
}

interface Cluster {
  name: string;
  package: string;
  isInstalled: boolean;
  nodes: number;
  start(place: BrokerPlace): Promise<BrokerNode[]>;
}

const CLUSTERS: readonly Cluster[] = [
  { name: "broker with Redis", package: "redis-server", isInstalled: hasRedis, nodes: 2, start: startWithRedis },
  // Two nodes would have no majority while one is away.
  { name: "RabbitMQ", package: "rabbitmq-server", isInstalled: hasRabbitmq, nodes: 3, start: startRabbitmq },
];

async function startWithRedis({ folder, supervisor, serviceUrl }: BrokerPlace): Promise<BrokerNode[]> {
  const brokers = await startRedisBrokers({ folder, supervisor, serviceUrl }, 2);
  return brokers.map(({ component, wsUrl }) => {
    const kill = () => void process.kill(supervisor.pids[component.name] ?? 0, "SIGKILL");
    return nodeOf(component, wsUrl, kill);
  });
}

async function startRabbitmq({ folder, supervisor, serviceUrl }: BrokerPlace): Promise<BrokerNode[]> {
  const { nameServer, nodes } = await rabbitmqCluster(join(folder, "rabbitmq"), serviceUrl, 3);
  await supervisor.start(nameServer);
  for (const { component } of nodes) await supervisor.start(component);
  return nodes.map(({ component, mqttUrl, kill }) => nodeOf(component, mqttUrl, kill));
}

const nodeOf = ({ ready }: Component, url: string, kill: () => void): BrokerNode => ({
  url,
  kill,
  isReady: () => ready([]),
});

const killNode = (node: BrokerNode): Fault =>
  killUntilBack(() => {
    node.kill();
    return () => node.isReady();
  });

const PAUSE_MS = 20;

const startLoad = (target: Target): Promise<Workload[]> => {
  const telemetry = { prefix: "broker-node", agents: 8, pauseMs: PAUSE_MS };
  return Promise.all([
    startTelemetry(target, { ...telemetry, channel: "MQTT" }),
    startTelemetry(target, { ...telemetry, channel: "HTTP" }),
    startCommands(target, { accessPoints: 20, pauseMs: 200, spinUpEveryMs: 5_000 }),
  ]);
};

/** Returns a row for each node of a cluster. The environment of the rows must have these nodes. */
const rowsOf = ({ name, nodes, isInstalled, package: debian }: Cluster, times: number): Row[] =>
  Array.from({ length: nodes }, (_, i) => ({
    name: `kill node ${i + 1} of ${nodes} ${times} times: ${name}`,
    ...(!isInstalled && { skipped: `needs Debian's package ${debian}` }),
    async run(at, signal) {
      const node = at.brokerNodes[i];
      if (node === undefined) throw new Error("The broker has no such node");
      // Without a timeout, which these workloads exceed on a busy machine.
      const target = () => ({ ...at.target(), client: new ApiClient(at.product.url) });
      return await underLoad({ ...at, target }, killNode(node), { times, signal, start: startLoad });
    },
  }));

export interface BrokerClustersOptions {
  /** How often each node is killed. */
  kills?: number | undefined;
  /** Only rows whose names match. */
  pattern: RegExp;
  jsonFile: string | undefined;
  signal: AbortSignal;
  /** Prints the rows instead. */
  isList: boolean;
}

/** Runs the product with each cluster in turn. Returns whether every guarantee was kept. */
export async function runBrokerClusters(options: BrokerClustersOptions): Promise<boolean> {
  const { kills = 10, pattern, jsonFile, signal, isList } = options;
  let isKept = true;
  for (const [i, cluster] of CLUSTERS.entries()) {
    const rows = rowsOf(cluster, kills).filter(({ name }) => pattern.test(name));
    if (isList) print(rows.map(({ name }) => name).join("\n"));
    if (isList || rows.length === 0) continue;
    const file = jsonFile?.replace(/(?:\.json)?$/, `-broker-${i + 1}.json`);
    const startBrokers = cluster.isInstalled ? cluster.start : undefined;
    isKept = (await runMatrix(rows, file, signal, { startBrokers })) && isKept;
  }
  return isKept;
}
