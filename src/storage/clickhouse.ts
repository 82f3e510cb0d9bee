import { type ClickHouseClient, type ClickHouseSettings, createClient } from "@clickhouse/client-web";
import * as z from "zod";
import type { StoresConfig } from "../env.ts";
import { withDeadline } from "../lib/deadline.ts";
import { Unavailable } from "../lib/errors.ts";
import { log } from "../lib/log.ts";
import { describeStoreError, isBug, isNodeFailure } from "./clickhouse-errors.ts";

/** Time without a response after which a ping checks that the server still runs. If it does, the query may take longer. */
const PING_AFTER_MS = 1_400;
/** The same if there are several nodes: within two seconds, another one must have responded. */
const PING_NODE_AFTER_MS = 700;
const PING_TIMEOUT_MS = 400;
const TIMEOUT_MS = 30_000;
/** A node that does not respond is skipped for this time. */
const SKIP_MS = 5_000;

export interface ClickHouse {
  /**
   * Runs queries. Throws `Unavailable` if no server responds or all are overloaded.
   * @param work may run again on another node, after an attempt with an unknown outcome
   */
  run<T>(work: (client: ClickHouseClient, signal: AbortSignal) => Promise<T>): Promise<T>;
  /** Throws if no server responds or a disk is full. */
  check(): Promise<void>;
}

/** With less free space even the smallest insert fails, or soon will. */
const MIN_FREE_BYTES = 16 * 1024 * 1024;
const FullDisks = z.array(z.object({ name: z.string() }));

/** Limits between the nodes of a cluster, so that the service learns of an outage before its callers give up. */
const NODE_LIMITS: ClickHouseSettings = {
  handshake_timeout_ms: 1_000,
  connections_with_failover_max_tries: "1",
  receive_timeout: 10,
};

/** Reads and inserts use the same replica, the first one that responds: a read then finds all earlier inserts. Deduplication needs this. */
export const ONE_REPLICA = { load_balancing: "in_order", prefer_localhost_replica: 0 } as const;

/** An insert that too few replicas have by then fails, and is repeated. */
const QUORUM_TIMEOUT_MS = 15_000;

function clusterSettings(config: StoresConfig): ClickHouseSettings {
  if (config.CLICKHOUSE_CLUSTER === undefined) return {};
  if (config.CLICKHOUSE_REPLICATION === "none") return NODE_LIMITS;
  return {
    ...NODE_LIMITS,
    insert_quorum: config.CLICKHOUSE_INSERT_QUORUM,
    insert_quorum_parallel: 1,
    insert_quorum_timeout: QUORUM_TIMEOUT_MS,
    ...ONE_REPLICA,
  };
}

interface Node {
  host: string;
  client: ClickHouseClient;
  /** When it may be tried again. */
  skippedUntilMs: number;
}

export function createClickHouse(
  config: StoresConfig,
  minFreeBytes = MIN_FREE_BYTES,
  now: () => number = Date.now,
): ClickHouse {
  const nodes = config.CLICKHOUSE_URL.map(
    (url): Node => ({
      host: new URL(url).host,
      client: createClient({
        url,
        username: config.CLICKHOUSE_USER,
        password: config.CLICKHOUSE_PASSWORD,
        database: config.CLICKHOUSE_DATABASE,
        request_timeout: TIMEOUT_MS,
        clickhouse_settings: clusterSettings(config),
        // Sends long parameters in the body: servers and proxies limit the length of a URL.
        use_multipart_params_auto: true,
      }),
      skippedUntilMs: 0,
    }),
  );
  const pingAfterMs = nodes.length === 1 ? PING_AFTER_MS : PING_NODE_AFTER_MS;

  /** Yields the nodes to try, in the order of the setting. If none responded lately, yields the one that has not been tried for longest. */
  function* candidates(): Generator<Node> {
    let hasYielded = false;
    for (const node of nodes) {
      if (node.skippedUntilMs > now()) continue;
      // One request tries a node that did not respond. The others skip it until it does.
      if (node.skippedUntilMs > 0) node.skippedUntilMs = now() + SKIP_MS;
      hasYielded = true;
      yield node;
    }
    const [oldest] = nodes.toSorted((a, b) => a.skippedUntilMs - b.skippedUntilMs);
    if (!hasYielded && oldest !== undefined) yield oldest;
  }

  const run: ClickHouse["run"] = async (work) => {
    let outage: unknown;
    const startedMs = now();
    for (const node of candidates()) {
      try {
        const result = await attempt(node.client, pingAfterMs, work);
        node.skippedUntilMs = 0;
        return result;
      } catch (error) {
        if (isBug(error)) throw error;
        outage = error;
        // After a query that was too slow, no caller waits for another one.
        if (!isNodeFailure(error) || now() - startedMs >= TIMEOUT_MS) break;
        if (nodes.length > 1 && node.skippedUntilMs === 0)
          log.warn("telemetry node down", { node: node.host, error: describeStoreError(error) });
        node.skippedUntilMs = now() + SKIP_MS;
      }
    }
    throw new Unavailable("telemetry store", outage);
  };

  const check = async (): Promise<void> => {
    let hasRun = false;
    try {
      const [full] = await run(async (client) => {
        await ping(client);
        hasRun = true;
        const result = await client.query({
          query: "SELECT name FROM system.disks WHERE free_space < {min:UInt64}",
          query_params: { min: minFreeBytes },
          format: "JSONEachRow",
        });
        return FullDisks.parse(await result.json());
      });
      if (full !== undefined) throw new Unavailable("telemetry store", new Error(`The disk ${full.name} is full`));
    } catch (error) {
      // Ignores missing permission for this query: the account may still be able to write.
      if (!(hasRun && isBug(error))) throw error;
    }
  };

  return { run, check };
}

async function ping(client: ClickHouseClient): Promise<void> {
  const result = await client.ping();
  if (!result.success) throw result.error;
}

/** Runs work on one node. Gives up when the node does not respond to a ping either. */
async function attempt<T>(
  client: ClickHouseClient,
  pingAfterMs: number,
  work: (client: ClickHouseClient, signal: AbortSignal) => Promise<T>,
): Promise<T> {
  const controller = new AbortController();
  const outage = Promise.withResolvers<never>();
  const pingTimer = setTimeout(() => {
    withDeadline(PING_TIMEOUT_MS, () => ping(client)).catch((error: unknown) => {
      controller.abort();
      outage.reject(error);
    });
  }, pingAfterMs);
  try {
    return await Promise.race([work(client, controller.signal), outage.promise]);
  } finally {
    clearTimeout(pingTimer);
  }
}
