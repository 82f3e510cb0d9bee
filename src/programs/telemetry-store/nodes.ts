import { type ClickHouseClient, ClickHouseError, ClickHouseLogLevel, createClient } from "@clickhouse/client-web";
import type { StoresConfig } from "../../env.ts";
import { withDeadline } from "../../lib/deadline.ts";
import { isUnreplicated } from "./ddl.ts";

/** The servers on which migrations, backup and restore work. */

/** One statement may copy a day of telemetry. */
const STATEMENT_MS = 10 * 60_000;
const PING_MS = 5_000;

/** Opens a client for one address. Without a database: before the database exists. */
export const openClient = (config: StoresConfig, url: string, database?: string): ClickHouseClient =>
  createClient({
    url,
    username: config.CLICKHOUSE_USER,
    password: config.CLICKHOUSE_PASSWORD,
    ...(database !== undefined && { database }),
    request_timeout: STATEMENT_MS,
    // At other levels the client prints advice about load balancers.
    log: { level: ClickHouseLogLevel.ERROR },
  });

/**
 * Returns the settings of each server on which statements must run: every node of a cluster without replication, otherwise one of the
 * addresses.
 */
export const nodesOf = async (config: StoresConfig): Promise<StoresConfig[]> =>
  isUnreplicated(config)
    ? config.CLICKHOUSE_URL.map((url) => ({ ...config, CLICKHOUSE_URL: [url] }))
    : [{ ...config, CLICKHOUSE_URL: [await respondingUrl(config)] }];

/** Returns the first address that responds. A single one is not tried. */
export async function respondingUrl(config: StoresConfig): Promise<string> {
  const [first = "", ...others] = config.CLICKHOUSE_URL;
  if (others.length === 0) return first;
  for (const url of [first, ...others]) if ((await pingError(config, url)) === undefined) return url;
  return first;
}

export interface Node {
  url: string;
  client: ClickHouseClient;
}

export interface Nodes {
  /** Those that respond, at least one. */
  available: Node[];
  /** The hosts of the others. */
  missing: string[];
  close(): Promise<void>;
}

/** Opens the servers on which statements must run. Throws if none responds. */
export async function openNodes(config: StoresConfig): Promise<Nodes> {
  const available: Node[] = [];
  const missing: string[] = [];
  let reason: unknown;
  for (const url of (await nodesOf(config)).flatMap((node) => node.CLICKHOUSE_URL)) {
    const error = await pingError(config, url);
    if (error === undefined) available.push({ url, client: openClient(config, url, config.CLICKHOUSE_DATABASE) });
    else missing.push(new URL(url).host);
    reason ??= error;
  }
  if (available.length === 0) throw reason;
  const close = async () => void (await Promise.all(available.map(({ client }) => client.close())));
  return { available, missing, close };
}

/** Returns why a server does not respond, or `undefined` if it does. */
async function pingError(config: StoresConfig, url: string): Promise<unknown> {
  const client = openClient(config, url);
  try {
    const result = await withDeadline(PING_MS, () => client.ping());
    return result.success ? undefined : result.error;
  } catch (error) {
    return error;
  } finally {
    await client.close();
  }
}

const NO_SUCH = new Set(["UNKNOWN_DATABASE", "UNKNOWN_TABLE"]);

/** Returns the DDL files that were applied to a server, with their hashes. A new server has none. */
export async function appliedDdl(client: ClickHouseClient): Promise<Map<string, string>> {
  try {
    const result = await client.query({ query: "SELECT name, hash FROM schema_migrations", format: "JSONEachRow" });
    return new Map((await result.json<{ name: string; hash: string }>()).map(({ name, hash }) => [name, hash]));
  } catch (error) {
    if (error instanceof ClickHouseError && NO_SUCH.has(error.type ?? "")) return new Map();
    throw error;
  }
}
