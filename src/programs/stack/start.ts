import { setTimeout as sleep } from "node:timers/promises";
import type { Config } from "../../env.ts";
import { describeError } from "../../lib/log.ts";
import { print, red, UserError } from "../shared/cli.ts";
import type { Settings } from "../shared/settings.ts";
import { migrateTelemetry } from "../telemetry-store/migrate.ts";
import type { Addresses } from "./addresses.ts";
import { ensureAdministrator, type FirstAdministrator } from "./administrator.ts";
import { BRIDGE_APP, bridgeComponent } from "./components/bridge-process.ts";
import { brokerComponent } from "./components/broker-process.ts";
import { loginSettings } from "./components/clickhouse-access.ts";
import { clickhouseComponent } from "./components/clickhouse-process.ts";
import { EMULATOR_APP, emulatorComponent } from "./components/emulator-process.ts";
import { mailCatcherComponent } from "./components/mail-catcher-process.ts";
import { passwordHasherComponent } from "./components/password-hasher-process.ts";
import { sqldComponent } from "./components/sqld.ts";
import { fillGazetteer, migrateAccounts } from "./migrations.ts";
import { ensureServiceApp } from "./service-apps.ts";
import type { Secrets } from "./stack-secrets.ts";
import type { Supervisor } from "./supervisor.ts";
import type { StackMode } from "./types.ts";

const READY_TIMEOUT_MS = 30_000;

/** Starts all components concurrently, and builds the Worker meanwhile. The bridge and the emulator start last. */
export async function startComponents(
  mode: StackMode,
  settings: Settings,
  addresses: Addresses,
  { env, config, secrets }: { env: Record<string, string>; config: Config; secrets: Secrets },
  supervisor: Supervisor,
): Promise<FirstAdministrator> {
  const { dataDir, host } = settings;
  const { sqld, clickhouse, mqtt, mail, port, socket, serviceUrl, mqttUrl } = addresses;
  const step = async <T>(name: string, work: Promise<T>): Promise<T> => {
    const startedMs = Date.now();
    const result = await work;
    print(`  ${name} ready after ${((Date.now() - startedMs) / 1000).toFixed(1)} s`);
    return result;
  };

  print("Starting …");
  const database = { url: config.LIBSQL_URL, authToken: config.LIBSQL_AUTH_TOKEN };
  const startAccounts = async () => {
    if (sqld !== undefined) await supervisor.start(sqldComponent(dataDir, sqld.port, sqld.access.publicKey));
    await withRetries("Cannot prepare the accounts database", async () => {
      await migrateAccounts(config);
      await ensureServiceApp(config, BRIDGE_APP, secrets.BRIDGE_KEY, { broker: true });
      await ensureServiceApp(config, EMULATOR_APP, secrets.EMULATOR_KEY, { broker: true, callbacks: true });
    });
    return await ensureAdministrator(database, settings.adminUsername, settings.adminPassword);
  };
  const startTelemetry = async () => {
    let owner = config;
    if (clickhouse !== undefined) {
      const databases = [config.CLICKHOUSE_DATABASE];
      const executable = settings.clickhouseBin;
      await supervisor.start(clickhouseComponent({ dataDir, ...clickhouse, databases, executable }));
      owner = { ...config, ...loginSettings(clickhouse.access.owner) };
    }
    await withRetries("Cannot prepare ClickHouse", () => migrateTelemetry(owner));
  };
  const startBroker = async () => {
    if (mqtt === undefined) return;
    const jwksUrl = `${serviceUrl}/.well-known/jwks.json`;
    const issuer = config.JWT_ISSUER;
    await supervisor.start(brokerComponent({ dataDir, host, ...mqtt, jwksUrl, issuer, accounts: database }));
  };
  const startMailCatcher = async () => {
    if (mail !== undefined) await supervisor.start(mailCatcherComponent({ dataDir, ...mail }));
  };
  const others = Promise.all([
    step("accounts (libSQL)", startAccounts()),
    step("telemetry (ClickHouse)", startTelemetry()),
    step("broker (MQTT)", startBroker()),
    step("mail catcher", startMailCatcher()),
    step("password hasher", supervisor.start(passwordHasherComponent(addresses.passwords))),
  ]);
  const startWorker = async () => {
    const component = await mode.workerComponent({ host, port, socket, url: serviceUrl, dataDir, env });
    // In production, requests may already wait for the port to open. They need all other components.
    if (mode.startsWorkerLast) await others;
    await supervisor.start(component);
  };
  const [[administrator]] = await Promise.all([others, step("worker", startWorker())]);
  await untilReady(serviceUrl);
  await Promise.all([
    supervisor.start(bridgeComponent({ serviceUrl, mqttUrl, apiKey: secrets.BRIDGE_KEY })),
    supervisor.start(emulatorComponent({ dataDir, serviceUrl, mqttUrl, apiKey: secrets.EMULATOR_KEY })),
  ]);
  void loadGazetteerInBackground(config, supervisor.stopSignal);
  return administrator;
}

/** Loads the gazetteer while the product already runs. Only place names need it, and loading takes several seconds. */
async function loadGazetteerInBackground(config: Config, signal: AbortSignal): Promise<void> {
  try {
    await withRetries("Cannot load the gazetteer", () => fillGazetteer(config, signal));
  } catch (error) {
    if (!signal.aborted) print(red(`${(error as Error).message} Restart to find places by name.`));
  }
}

const ATTEMPTS = 5;

/** Retries idempotent work. An external server may start late, and the supervisor may be restarting one of ours. */
async function withRetries(failure: string, work: () => Promise<void>): Promise<void> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await work();
    } catch (error) {
      if (error instanceof UserError) throw error;
      if (attempt === ATTEMPTS) throw new UserError(`${failure}: ${describeError(error)}`);
      await sleep(1_000 * attempt);
    }
  }
}

async function untilReady(serviceUrl: string): Promise<void> {
  let lastResponse = "no response";
  for (const deadlineMs = Date.now() + READY_TIMEOUT_MS; Date.now() < deadlineMs; await sleep(200)) {
    try {
      const response = await fetch(`${serviceUrl}/readyz`);
      if (response.ok) return;
      lastResponse = await response.text();
    } catch {
      // The Worker does not listen yet.
    }
  }
  throw new UserError(`The controller was not ready within ${READY_TIMEOUT_MS / 1000} s: ${lastResponse}`);
}
