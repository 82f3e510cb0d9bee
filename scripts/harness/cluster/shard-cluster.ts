import { join } from "node:path";
import { randomSecret } from "../../../src/auth/secrets.ts";
import {
  type ClickHouseAccess,
  type ClickHouseLogin,
  clickhouseSettings,
  LOOPBACK,
} from "../../../src/programs/stack/components/clickhouse-access.ts";
import { clickhouseComponent } from "../../../src/programs/stack/components/clickhouse-process.ts";
import { anyFreePort } from "../../../src/programs/stack/ports.ts";
import { type Component, Supervisor } from "../../../src/programs/stack/supervisor.ts";

/** A ClickHouse cluster of shards without replicas, on this machine. */

export const CLUSTER = "shards";

export interface ShardClusterOptions {
  dataDir: string;
  shards: number;
  access: ClickHouseAccess;
  databases: readonly string[];
}

interface ShardNode {
  component: Component;
  url: string;
  supervisor: Supervisor;
}

export class ShardCluster {
  readonly #nodes: ShardNode[];

  private constructor(nodes: ShardNode[]) {
    this.#nodes = nodes;
  }

  static async start({ dataDir, shards, access, databases }: ShardClusterOptions): Promise<ShardCluster> {
    const ports = await Promise.all(Array.from({ length: 2 * shards }, anyFreePort));
    const [httpPorts, nativePorts] = [ports.slice(0, shards), ports.slice(shards)];
    const secret = randomSecret();
    const nodes = httpPorts.map((port, node): ShardNode => {
      const options = { port, access, databases, executable: process.env.CLICKHOUSE_BIN };
      const addresses = nativePorts.map((native) => ({ host: LOOPBACK, port: native }));
      const cluster = { name: CLUSTER, nodes: addresses, node, secret };
      const component = clickhouseComponent({ ...options, dataDir: join(dataDir, `shard-${node}`), cluster });
      return {
        component: { ...component, name: nameOf(node) },
        url: `http://127.0.0.1:${port}`,
        supervisor: new Supervisor(),
      };
    });
    const cluster = new ShardCluster(nodes);
    try {
      await Promise.all(nodes.map(({ supervisor, component }) => supervisor.start(component)));
      return cluster;
    } catch (error) {
      await cluster.stop();
      throw error;
    }
  }

  /** The addresses of the nodes, in the order of their shards. */
  get urls(): string[] {
    return this.#nodes.map(({ url }) => url);
  }

  /** Returns the settings for the product, with all addresses. */
  settings(login: ClickHouseLogin): Record<string, string> {
    return {
      ...clickhouseSettings(this.urls.join(), login),
      CLICKHOUSE_CLUSTER: CLUSTER,
      CLICKHOUSE_REPLICATION: "none",
      CLICKHOUSE_SHARDS: String(this.#nodes.length),
    };
  }

  pidOf(node: number): number {
    const pid = this.#nodes[node]?.supervisor.pids[nameOf(node)];
    if (pid === undefined) throw new Error(`${nameOf(node)} does not run`);
    return pid;
  }

  /** Returns whether all nodes respond. */
  async isReady(): Promise<boolean> {
    const ready = await Promise.all(this.#nodes.map(({ component }) => component.ready([]).catch(() => false)));
    return ready.every(Boolean);
  }

  /** Kills a node until `revive`. */
  async kill(node: number): Promise<void> {
    process.kill(this.pidOf(node), "SIGKILL");
    await this.#nodes[node]?.supervisor.stop();
  }

  /** Starts a node again, unless it runs. */
  async revive(node: number): Promise<void> {
    const dead = this.#nodes[node];
    if (!dead?.supervisor.stopSignal.aborted) return;
    dead.supervisor = new Supervisor();
    await dead.supervisor.start(dead.component);
  }

  async stop(): Promise<void> {
    await Promise.all(this.#nodes.map(({ supervisor }) => supervisor.stop()));
  }
}

const nameOf = (node: number): string => `clickhouse shard ${node + 1}`;
