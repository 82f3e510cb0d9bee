import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { TestProject } from "vitest/node";
import { brokerPart } from "../../scripts/stack/broker.ts";
import { clickhousePart } from "../../scripts/stack/clickhouse.ts";
import { migrateAccounts, migrateTelemetry } from "../../scripts/stack/migrations.ts";
import { anyFreePort } from "../../scripts/stack/ports.ts";
import { generateSecrets } from "../../scripts/stack/secrets.ts";
import { sqldPart } from "../../scripts/stack/sqld.ts";
import { Supervisor } from "../../scripts/stack/supervisor.ts";
import { parseEnv } from "../../src/env.ts";

declare module "vitest" {
  export interface ProvidedContext {
    workerEnvironment: Record<string, string>;
  }
}

/** Starts the real stores and the broker for the tests inside workerd: on free ports, in a folder that goes with them. */
export default async function startStores(project: TestProject): Promise<() => Promise<void>> {
  const folder = mkdtempSync(join(tmpdir(), "controller-test-"));
  const supervisor = new Supervisor();
  const stop = async () => {
    await supervisor.stop();
    rmSync(folder, { recursive: true, force: true });
  };
  try {
    const [sqld, clickhouse, mqtt, mqttWs] = await Promise.all([
      anyFreePort(),
      anyFreePort(),
      anyFreePort(),
      anyFreePort(),
    ]);
    const { JWT_KEYS, ...secrets } = await generateSecrets();
    const environment = {
      ...secrets,
      JWT_KEYS: JSON.stringify(JWT_KEYS),
      LIBSQL_URL: `http://127.0.0.1:${sqld}`,
      CLICKHOUSE_URL: `http://127.0.0.1:${clickhouse}`,
      MQTT_URL: `ws://127.0.0.1:${mqttWs}`,
      MQTT_TCP_URL: `mqtt://127.0.0.1:${mqtt}`,
      CORS_ORIGINS: "https://dashboard.example.com",
    };
    const config = parseEnv(environment);
    await Promise.all([
      supervisor.start(sqldPart(folder, sqld)).then(() => migrateAccounts(config)),
      supervisor
        .start(clickhousePart(folder, clickhouse, process.env.CLICKHOUSE_BIN))
        .then(() => migrateTelemetry(config)),
      supervisor.start(brokerPart("127.0.0.1", mqtt, mqttWs)),
    ]);
    project.provide("workerEnvironment", environment);
    return stop;
  } catch (error) {
    await stop();
    throw error;
  }
}
