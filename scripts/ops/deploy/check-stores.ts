import { createClient as createClickHouse } from "@clickhouse/client-web";
import { createClient as createLibsql } from "@libsql/client/http";
import { connectAsync } from "mqtt";
import type { StoresConfig } from "../../../src/env.ts";

/** Whether the Worker will find what it needs, asked from here. */

const TIMEOUT_MS = 10_000;

/** What is wrong with each; nothing where all is well. */
export async function faultsOfStores(config: StoresConfig, mqttUrl: string | undefined) {
  const [libsql, clickhouse, broker] = await Promise.all([
    fault("The accounts database (LIBSQL_URL)", askLibsql(config)),
    fault("ClickHouse (CLICKHOUSE_URL)", askClickHouse(config)),
    mqttUrl === undefined ? [] : fault("The broker (MQTT_URL)", askBroker(mqttUrl)),
  ]);
  return { stores: [...libsql, ...clickhouse], broker };
}

const fault = async (what: string, asked: Promise<void>): Promise<string[]> =>
  await asked.then(
    () => [],
    (error: Error) => [`${what} does not answer as it should: ${reasonOf(error)}`],
  );

async function askLibsql({ LIBSQL_URL: url, LIBSQL_AUTH_TOKEN: authToken }: StoresConfig): Promise<void> {
  const client = createLibsql({
    url,
    ...(authToken !== undefined && { authToken }),
    fetch: (request: Request) => fetch(request, { signal: AbortSignal.timeout(TIMEOUT_MS) }),
  });
  try {
    await client.execute("SELECT 1");
  } finally {
    client.close();
  }
}

async function askClickHouse(config: StoresConfig): Promise<void> {
  const client = createClickHouse({
    url: config.CLICKHOUSE_URL,
    username: config.CLICKHOUSE_USER,
    password: config.CLICKHOUSE_PASSWORD,
    request_timeout: TIMEOUT_MS,
  });
  try {
    const answer = await client.ping({ select: true });
    if (!answer.success) throw answer.error;
  } finally {
    await client.close();
  }
}

/** A broker that refuses is there: nobody has a token yet that it would take. */
async function askBroker(url: string): Promise<void> {
  try {
    const client = await connectAsync(url, { reconnectPeriod: 0, connectTimeout: TIMEOUT_MS });
    client.end(true);
  } catch (error) {
    const isRefusal = typeof (error as { code?: unknown }).code === "number";
    if (!isRefusal) throw error;
  }
}

/** Behind "fetch failed" is why. */
function reasonOf({ message, cause }: Error): string {
  return cause instanceof Error ? reasonOf(cause) : message;
}
