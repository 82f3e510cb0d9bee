import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { unlessAborted } from "../../../src/programs/shared/interruption.ts";
import { clickhouseSettings } from "../../../src/programs/stack/components/clickhouse-access.ts";
import { markFolder } from "../../../src/programs/stack/data-folder.ts";
import { anyFreePort } from "../../../src/programs/stack/ports.ts";
import { Supervisor } from "../../../src/programs/stack/supervisor.ts";
import type { BrokerPlace } from "../brokers/redis-brokers.ts";
import { ApiClient, type Target } from "../client.ts";
import { Product } from "../product.ts";
import { startStores } from "../store-processes.ts";
import type { BrokerNode } from "./broker-cluster.ts";
import { FaultyProxy } from "./faulty-proxy.ts";
import { LimitedDisk } from "./limited-disk.ts";

/** Components behind a proxy. */
export const PROXIED = ["worker", "sqld", "clickhouse", "broker"] as const;
/** Components with a data folder. */
export const DISKS = [...PROXIED, "emulator"] as const;
export const COMPONENTS = [...DISKS, "bridge", "passwords"] as const;
export type Proxied = (typeof PROXIED)[number];
export type Disk = (typeof DISKS)[number];
export type Component = (typeof COMPONENTS)[number];

const STORES: readonly Component[] = ["sqld", "clickhouse", "broker"];
const TIMEOUT_MS = 5_000;

/** The environment of a fault, or a plain product. */
export interface FaultTarget {
  product: Product;
  /** Returns a target for one round of workloads. */
  target(): Target;
  pidOf(component: Component): number;
}

export interface FaultEnvironment extends FaultTarget {
  proxies: Readonly<Record<Proxied, FaultyProxy>>;
  disks: ReadonlyMap<Disk, LimitedDisk>;
  /** The nodes of the broker, if the rows kill them. They have no proxy. */
  brokerNodes: readonly BrokerNode[];
}

export interface EnvironmentOptions {
  hasLimitedDisks: boolean;
  signal: AbortSignal;
  /** Starts the nodes of the broker that the product uses. */
  startBrokers?: ((place: BrokerPlace) => Promise<BrokerNode[]>) | undefined;
}

/** Runs the product with its stores beside it, a proxy in front of each component, and if necessary a limited disk under each. */
export async function withFaultEnvironment(
  { hasLimitedDisks, signal, startBrokers = async () => [] }: EnvironmentOptions,
  work: (environment: FaultEnvironment) => Promise<void>,
): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), "controller-faults-"));
  const [storesDir, dataDir] = [join(folder, "stores"), join(folder, "data")];
  const [worker, sqld] = [new FaultyProxy(), new FaultyProxy()];
  const [clickhouse, broker] = [new FaultyProxy(), new FaultyProxy()];
  const proxies = { worker, sqld, clickhouse, broker };
  const disks = new Map<Disk, LimitedDisk>();
  const supervisor = new Supervisor();
  try {
    mkdirSync(dataDir);
    markFolder(dataDir);
    for (const disk of hasLimitedDisks ? DISKS : [])
      disks.set(disk, new LimitedDisk(join(STORES.includes(disk) ? storesDir : dataDir, disk)));
    const port = await anyFreePort();
    const serviceUrl = `http://127.0.0.1:${port}`;
    const starting = startStores({ dataDir: storesDir, supervisor, serviceUrl, hasSqldLogin: true });
    const { urls, sqldQuery, clickhouseLogin } = await unlessAborted(starting, signal);
    const brokerNodes = await unlessAborted(startBrokers({ folder, supervisor, serviceUrl }), signal);
    if (brokerNodes.length > 0) urls.mqtt = brokerNodes.map((node) => node.url).join(",");
    const url = await worker.forwardTo(serviceUrl);
    const env = {
      PORT: String(port),
      LIBSQL_URL: `${await sqld.forwardTo(urls.libsql)}${sqldQuery}`,
      // The product uses one login for everything if it did not start the store.
      ...clickhouseSettings(await clickhouse.forwardTo(urls.clickhouse), clickhouseLogin),
      MQTT_URL: brokerNodes.length > 0 ? urls.mqtt : await broker.forwardTo(urls.mqtt),
      LOG_REQUESTS: "failures",
      // The receivers of webhooks are on this machine.
      WEBHOOK_NETWORKS: "private",
    };
    const product = await Product.run("start", dataDir, env, { signal });
    const environment: FaultEnvironment = {
      product,
      proxies,
      disks,
      brokerNodes,
      // The service through its proxy, and the stores without theirs.
      target: () => ({ client: new ApiClient(url, { timeoutMs: TIMEOUT_MS }), dataDir, urls }),
      pidOf(component) {
        const pid = STORES.includes(component) ? supervisor.pids[component] : product.pidOf(component);
        if (pid === undefined) throw new Error(`${component} does not run`);
        return pid;
      },
    };
    await work(environment).finally(() => product.interrupt());
  } finally {
    await supervisor.stop();
    for (const proxy of Object.values(proxies)) await proxy.close();
    for (const disk of disks.values()) disk.unmount();
    rmSync(folder, { recursive: true, force: true });
  }
}
