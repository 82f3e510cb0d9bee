import { setTimeout as sleep } from "node:timers/promises";
import type { Config } from "../../env.ts";
import { describeError } from "../../lib/log.ts";
import { print, red, UserError } from "../shared/cli.ts";
import type { Settings } from "../shared/settings.ts";
import type { Addresses } from "./addresses.ts";
import { ensureAdministrator, type FirstAdministrator } from "./administrator.ts";
import { BRIDGE_APP, bridgeComponent } from "./components/bridge-process.ts";
import { brokerComponent } from "./components/broker-process.ts";
import { clickhouseSettings } from "./components/clickhouse-access.ts";
import { clickhouseComponent } from "./components/clickhouse-process.ts";
import { EMULATOR_APP, emulatorComponent } from "./components/emulator-process.ts";
import { mailCatcherComponent } from "./components/mail-catcher-process.ts";
import { passwordHasherComponent } from "./components/password-hasher-process.ts";
import { sqldComponent } from "./components/sqld.ts";
import { fillGazetteer, migrateAccounts, migrateTelemetry } from "./migrations.ts";
import { ensureServiceApp } from "./service-apps.ts";
import type { Secrets } from "./stack-secrets.ts";
import type { Supervisor } from "./supervisor.ts";
import type { StackForm } from "./types.ts";

const READY_TIMEOUT_MS = 30_000;

/** Starts everything side by side; the Worker is built meanwhile, and opens last. */
export async function startComponents(
  form: StackForm,
  settings: Settings,
  addresses: Addresses,
  { env, config, secrets }: { env: Record<string, string>; config: Config; secrets: Secrets },
  supervisor: Supervisor,
): Promise<FirstAdministrator> {
  const { dataDir, host } = settings;
  const { sqld, clickhouse, mqtt, port, socket } = addresses;
  const step = async <T>(name: string, work: Promise<T>): Promise<T> => {
    const startedMs = Date.now();
    const result = await work;
    print(`  ${name} ready after ${((Date.now() - startedMs) / 1000).toFixed(1)} s`);
    return result;
  };

  print("Starting …");
  const database = { url: config.LIBSQL_URL, authToken: config.LIBSQL_AUTH_TOKEN };
  const accounts = async () => {
    if (sqld !== undefined) await supervisor.start(sqldComponent(dataDir, sqld.port, sqld.access.publicKey));
    await persistently("The accounts database cannot be prepared", () => migrateAccounts(config));
    await ensureServiceApp(config, BRIDGE_APP, secrets.BRIDGE_KEY, { broker: true });
    await ensureServiceApp(config, EMULATOR_APP, secrets.EMULATOR_KEY, { broker: true, callbacks: true });
    return await ensureAdministrator(database, settings.adminUsername, settings.adminPassword);
  };
  const telemetry = async () => {
    let owner = config;
    if (clickhouse !== undefined) {
      const databases = [config.CLICKHOUSE_DATABASE];
      await supervisor.start(
        clickhouseComponent({ dataDir, ...clickhouse, databases, executable: settings.clickhouseBin }),
      );
      owner = { ...config, ...clickhouseSettings(addresses.clickhouseUrl, clickhouse.access.owner) };
    }
    await persistently("ClickHouse cannot be prepared", () => migrateTelemetry(owner));
  };
  const broker = async () => {
    if (mqtt === undefined) return;
    const jwksUrl = `${addresses.serviceUrl}/.well-known/jwks.json`;
    await supervisor.start(
      brokerComponent({ dataDir, host, ...mqtt, jwksUrl, issuer: config.JWT_ISSUER, accounts: database }),
    );
  };
  const mail = async () => {
    if (addresses.mail !== undefined) await supervisor.start(mailCatcherComponent({ dataDir, ...addresses.mail }));
  };
  const others = Promise.all([
    step("accounts (libSQL)", accounts()),
    step("telemetry (ClickHouse)", telemetry()),
    step("broker (MQTT)", broker()),
    step("mail", mail()),
    step("passwords", supervisor.start(passwordHasherComponent(addresses.passwords))),
  ]);
  const worker = async () => {
    const { serviceUrl: url } = addresses;
    const part = await form.workerComponent({ host, port, socket, url, signal: supervisor.stopSignal, dataDir, env });
    // In production requests may be waiting for the port to open, and need everything behind it.
    if (form.opensLast) await others;
    await supervisor.start(part);
  };
  const [[administrator]] = await Promise.all([others, step("worker", worker())]);
  await untilReady(addresses.serviceUrl);
  const { serviceUrl, mqttUrl } = addresses;
  await Promise.all([
    supervisor.start(bridgeComponent({ serviceUrl, mqttUrl, apiKey: secrets.BRIDGE_KEY })),
    supervisor.start(emulatorComponent({ dataDir, serviceUrl, mqttUrl, apiKey: secrets.EMULATOR_KEY })),
  ]);
  void loadTowns(config, supervisor.stopSignal);
  return administrator;
}

/** Loads the gazetteer beside the running product. Only names of places need it, and loading takes several seconds. */
async function loadTowns(config: Config, signal: AbortSignal): Promise<void> {
  try {
    await persistently("The gazetteer cannot be loaded", () => fillGazetteer(config, signal));
  } catch (error) {
    if (!signal.aborted) print(red(`${(error as Error).message} Start again to find places by name.`));
  }
}

const ATTEMPTS = 5;

/** Tries again what may be run twice: a server that runs elsewhere may be a moment late, one of ours may just be revived. */
async function persistently(complaint: string, work: () => Promise<void>): Promise<void> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await work();
    } catch (error) {
      if (error instanceof UserError) throw error;
      if (attempt === ATTEMPTS) throw new UserError(`${complaint}: ${describeError(error)}`);
      await sleep(1_000 * attempt);
    }
  }
}

async function untilReady(serviceUrl: string): Promise<void> {
  let answer = "no answer";
  for (const deadlineMs = Date.now() + READY_TIMEOUT_MS; Date.now() < deadlineMs; await sleep(200)) {
    try {
      const response = await fetch(`${serviceUrl}/readyz`);
      if (response.ok) return;
      answer = await response.text();
    } catch {
      // Not listening yet.
    }
  }
  throw new UserError(`The service did not become ready: ${answer}`);
}
