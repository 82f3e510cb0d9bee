import { ClickHouseError } from "@clickhouse/client-web";
import type { StoresConfig } from "../../env.ts";
import { print, UserError } from "../shared/cli.ts";
import { isUnreplicated } from "./ddl.ts";
import { openClient, respondingUrl } from "./nodes.ts";

export interface Shard {
  weight: number;
  replicas: number;
}

/** Compares the settings with the cluster as ClickHouse knows it. Throws a `UserError` if they do not fit. */
export async function checkCluster(config: StoresConfig): Promise<void> {
  const { CLICKHOUSE_CLUSTER: cluster, CLICKHOUSE_SHARDS: stated } = config;
  if (cluster === undefined) return;
  const shards = await readShards(config, cluster);
  // The account may not read this table.
  if (shards === undefined) return;
  if (shards.length === 0)
    throw new UserError(`ClickHouse has no cluster "${cluster}" in its remote_servers (CLICKHOUSE_CLUSTER).`);
  const nodes = shards.reduce((sum, { replicas }) => sum + replicas, 0);
  const addresses = config.CLICKHOUSE_URL.length;
  if (isUnreplicated(config) && addresses !== nodes)
    throw new UserError(
      `CLICKHOUSE_URL has ${addresses} addresses, but the cluster "${cluster}" has ${nodes} nodes. ` +
        "With CLICKHOUSE_REPLICATION=none it must have the address of each node.",
    );
  if (isUnreplicated(config) && nodes > shards.length)
    throw new UserError(
      `A shard of the cluster "${cluster}" has several replicas, which CLICKHOUSE_REPLICATION=none would not fill.`,
    );
  if (stated !== shards.length && shards.every(({ weight }) => weight === 1))
    print(
      `The ClickHouse cluster "${cluster}" has ${shards.length} shards, but CLICKHOUSE_SHARDS is ${stated}: ` +
        "an outage of one shard delays the telemetry of the others.",
    );
}

/** Returns the shards of a cluster, or `undefined` if the account may not read them. */
export async function readShards(config: StoresConfig, cluster: string): Promise<Shard[] | undefined> {
  const client = openClient(config, await respondingUrl(config));
  try {
    const result = await client.query({
      query: `SELECT toUInt32(any(shard_weight)) AS weight, toUInt32(count()) AS replicas FROM system.clusters
              WHERE cluster = {cluster:String} GROUP BY shard_num`,
      query_params: { cluster },
      format: "JSONEachRow",
    });
    return await result.json<Shard>();
  } catch (error) {
    if (error instanceof ClickHouseError && error.type === "ACCESS_DENIED") return undefined;
    throw error;
  } finally {
    await client.close();
  }
}
