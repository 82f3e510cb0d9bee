import { createClient as createClickHouse } from "@clickhouse/client-web";
import { createClient as createLibsql } from "@libsql/client/http";
import { connectAsync } from "mqtt";
import type { StoresConfig } from "../../../src/env.ts";
import { Addresses, splitAddresses } from "../../../src/lib/addresses.ts";
import type { Problem } from "./worker-settings.ts";

const TIMEOUT_MS = 10_000;

/** Checks from this machine that the stores and the broker are available with the settings of the Worker. */
export async function checkStores(config: StoresConfig, mqttUrl: string | undefined): Promise<Problem[]> {
  const problems = await Promise.all([
    check("stores", "The accounts database (LIBSQL_URL)", queryLibsql(config)),
    check("stores", "ClickHouse (CLICKHOUSE_URL)", queryClickHouse(config)),
    mqttUrl === undefined ? [] : check("broker", "The broker (MQTT_URL)", connectToBroker(mqttUrl)),
  ]);
  return problems.flat();
}

async function check(area: Problem["area"], component: string, attempt: Promise<void>): Promise<Problem[]> {
  try {
    await attempt;
    return [];
  } catch (error) {
    return [{ area, message: `${component} is unavailable: ${innermostMessage(error as Error)}` }];
  }
}

async function queryLibsql({ LIBSQL_URL: url, LIBSQL_AUTH_TOKEN: authToken }: StoresConfig): Promise<void> {
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

async function queryClickHouse(config: StoresConfig): Promise<void> {
  for (const url of config.CLICKHOUSE_URL) await queryNode(config, url);
}

async function queryNode(config: StoresConfig, url: string): Promise<void> {
  const client = createClickHouse({
    url,
    username: config.CLICKHOUSE_USER,
    password: config.CLICKHOUSE_PASSWORD,
    request_timeout: TIMEOUT_MS,
  });
  try {
    const response = await client.ping({ select: true });
    if (!response.success) throw response.error;
  } finally {
    await client.close();
  }
}

/** Throws if no node of the broker is available. */
const connectToBroker = (list: string): Promise<void> => new Addresses(splitAddresses(list)).use(connectToNode);

/** A broker that rejects the login is available. No valid token exists before the first deployment. */
async function connectToNode(url: string): Promise<void> {
  try {
    const client = await connectAsync(url, { reconnectPeriod: 0, connectTimeout: TIMEOUT_MS });
    client.end(true);
  } catch (error) {
    const isRejection = typeof (error as { code?: unknown }).code === "number";
    if (!isRejection) throw error;
  }
}

/** `fetch` reports only "fetch failed". Its causes contain the reason. */
function innermostMessage({ message, cause }: Error): string {
  return cause instanceof Error ? innermostMessage(cause) : message;
}
