import { setTimeout as sleep } from "node:timers/promises";
import { parseArgs } from "node:util";
import { randomSecret } from "../../src/auth/secrets.ts";
import { BadConfiguration, type Config, parseEnv } from "../../src/env.ts";
import { describeError } from "../../src/log.ts";
import { ensureAdministrator, type FirstAdministrator } from "./administrator.ts";
import { BRIDGE_APP, bridgePart } from "./bridge.ts";
import { brokerPart } from "./broker.ts";
import { clickhousePart } from "./clickhouse.ts";
import { CONFIG_OPTION, loadConfiguration } from "./configuration.ts";
import { bold, Refused, red, say } from "./console.ts";
import { openDataFolder } from "./data-folder.ts";
import { EMULATOR_APP, emulatorPart } from "./emulator.ts";
import { mailFolder, mailPart } from "./mail.ts";
import { fillGazetteer, migrateAccounts, migrateTelemetry } from "./migrations.ts";
import { type PasswordsOptions, passwordsPart } from "./passwords.ts";
import { anyFreePort, claimPort } from "./ports.ts";
import { loadSecrets, type Secrets } from "./secrets.ts";
import { ensureServiceApp } from "./service-apps.ts";
import { notifyReady } from "./service-manager.ts";
import { readSettings, type Settings } from "./settings.ts";
import { newSqldAccess, type SqldAccess, sqldPart } from "./sqld.ts";
import { type Part, Supervisor } from "./supervisor.ts";

/** The whole product on one machine: the stores, the broker and, in one of two forms, the Worker. */

export interface WorkerOptions {
  host: string;
  port: number;
  /** Where the Worker is reached from this machine. */
  url: string;
  /** Fires when the stack is told to stop. */
  signal: AbortSignal;
  dataDir: string;
  /** The Worker's settings and secrets. */
  env: Record<string, string>;
}

export interface StackForm {
  help: string;
  workerPart(options: WorkerOptions): Part | Promise<Part>;
}

const READY_TIMEOUT_MS = 30_000;

export async function runStack(form: StackForm): Promise<void> {
  try {
    const { reset, help, config } = readArguments();
    if (help) return say(form.help);
    loadConfiguration(config);
    await run(form, reset);
  } catch (error) {
    if (!(error instanceof Refused || error instanceof BadConfiguration)) throw error;
    say(red(error.message));
    process.exitCode = 1;
  }
}

function readArguments() {
  try {
    const options = {
      ...CONFIG_OPTION,
      reset: { type: "boolean", default: false },
      help: { type: "boolean", short: "h", default: false },
    } as const;
    return parseArgs({ options }).values;
  } catch (error) {
    throw new Refused(`${error instanceof Error ? error.message : error} Try --help.`);
  }
}

async function run(form: StackForm, reset: boolean): Promise<void> {
  const startedMs = Date.now();
  const settings = readSettings(process.env);
  // Whatever the parts write is for this user's eyes only: also where the folder itself was made by somebody else.
  process.umask(0o077);
  const folder = openDataFolder(settings.dataDir, { reset, keepSecrets: settings.libsqlUrl !== undefined });
  let urls: Record<string, string> = {};
  const supervisor = new Supervisor(() => folder.record(supervisor.pids, urls));
  const stopRequested = untilStopped();

  try {
    const addresses = await chooseAddresses(settings);
    urls = {
      service: addresses.serviceUrl,
      libsql: addresses.libsqlUrl,
      clickhouse: addresses.clickhouseUrl,
      mqtt: addresses.mqttUrl,
    };
    const secrets = await loadSecrets(settings.dataDir);
    const env = workerEnvironment(settings, addresses, secrets);
    const config = parseEnv(env);
    const running = start(form, settings, addresses, { env, config, secrets }, supervisor);
    const administrator = await Promise.race([running, supervisor.fatal, stopRequested]);
    if (administrator !== STOPPED) {
      announce(settings, addresses, administrator, Date.now() - startedMs);
      notifyReady();
      await Promise.race([supervisor.fatal, stopRequested]);
    }
    say("Stopping.");
  } finally {
    await supervisor.stop();
    folder.release();
  }
  say("Stopped.");
  // A start that was cut short may still be waiting for parts that are gone by now.
  process.exit();
}

const STOPPED = Symbol("stopped");

function untilStopped(): Promise<typeof STOPPED> {
  return new Promise((resolve) => {
    // Not `once`: npm passes the terminal's Ctrl-C on a second time, and that must not end us before the parts have ended.
    for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) process.on(signal, () => resolve(STOPPED));
    // Whoever read our lines has gone. Without this, the next line would end us at once and leave the parts behind.
    for (const stream of [process.stdout, process.stderr]) stream.on("error", () => resolve(STOPPED));
  });
}

interface Addresses {
  port: number;
  serviceUrl: string;
  libsqlUrl: string;
  clickhouseUrl: string;
  mqttUrl: string;
  mailUrl: string;
  /** Where a store or the broker is ours to start: its port. */
  sqld: { port: number; access: SqldAccess } | undefined;
  clickhousePort: number | undefined;
  mqtt: { tcpPort: number; wsPort: number } | undefined;
  mailPort: number | undefined;
  /** With a token that is another one at every start: nobody but the Worker has a use for it. */
  passwords: PasswordsOptions;
}

async function chooseAddresses(settings: Settings): Promise<Addresses> {
  const { host } = settings;
  const port = await claimPort(settings.port, host);
  let mqtt: Addresses["mqtt"];
  if (settings.mqttUrl === undefined) {
    const tcpPort = await claimPort(settings.mqttPort, host, new Set([port]));
    mqtt = { tcpPort, wsPort: await claimPort(settings.mqttWsPort, host, new Set([port, tcpPort])) };
  }
  const sqld =
    settings.libsqlUrl === undefined ? { port: await anyFreePort(), access: await newSqldAccess() } : undefined;
  const clickhousePort = settings.clickhouseUrl === undefined ? await anyFreePort() : undefined;
  const mailPort = settings.mailUrl === undefined ? await anyFreePort() : undefined;
  const local: Record<string, string> = { "0.0.0.0": "127.0.0.1", "::": "[::1]" };
  const reachable = local[host] ?? (host.includes(":") ? `[${host}]` : host);
  return {
    port,
    serviceUrl: `http://${reachable}:${port}`,
    libsqlUrl: settings.libsqlUrl ?? `http://127.0.0.1:${sqld?.port}?authToken=${sqld?.access.token}`,
    clickhouseUrl: settings.clickhouseUrl ?? `http://127.0.0.1:${clickhousePort}`,
    mqttUrl: settings.mqttUrl ?? `ws://${reachable}:${mqtt?.wsPort}`,
    mailUrl: settings.mailUrl ?? `http://127.0.0.1:${mailPort}`,
    sqld,
    clickhousePort,
    mqtt,
    mailPort,
    passwords: { port: await anyFreePort(), token: randomSecret() },
  };
}

function workerEnvironment(settings: Settings, addresses: Addresses, secrets: Secrets): Record<string, string> {
  const { JWT_KEYS, ENCRYPTION_KEY, CREDENTIAL_PEPPER } = secrets;
  return {
    PUBLIC_URL: addresses.serviceUrl,
    ...settings.workerSettings,
    LIBSQL_URL: addresses.libsqlUrl,
    CLICKHOUSE_URL: addresses.clickhouseUrl,
    MQTT_URL: addresses.mqttUrl,
    MAIL_URL: addresses.mailUrl,
    PASSWORDS_URL: `http://127.0.0.1:${addresses.passwords.port}`,
    PASSWORDS_TOKEN: addresses.passwords.token,
    ENCRYPTION_KEY,
    CREDENTIAL_PEPPER,
    JWT_KEYS: JSON.stringify(JWT_KEYS),
  };
}

/** Starts everything side by side: only migrations have something to wait for. */
async function start(
  form: StackForm,
  settings: Settings,
  addresses: Addresses,
  { env, config, secrets }: { env: Record<string, string>; config: Config; secrets: Secrets },
  supervisor: Supervisor,
): Promise<FirstAdministrator> {
  const { dataDir, host } = settings;
  const { sqld, clickhousePort, mqtt, mailPort, port } = addresses;
  const step = async <T>(name: string, work: Promise<T>): Promise<T> => {
    const startedMs = Date.now();
    const result = await work;
    say(`  ${name} ready after ${((Date.now() - startedMs) / 1000).toFixed(1)} s`);
    return result;
  };

  say("Starting …");
  const database = { url: config.LIBSQL_URL, authToken: config.LIBSQL_AUTH_TOKEN };
  const accounts = async () => {
    if (sqld !== undefined) await supervisor.start(sqldPart(dataDir, sqld.port, sqld.access.publicKey));
    await persistently("The accounts database cannot be prepared", () => migrateAccounts(config));
    await ensureServiceApp(config, BRIDGE_APP, secrets.BRIDGE_KEY, { broker: true });
    await ensureServiceApp(config, EMULATOR_APP, secrets.EMULATOR_KEY, { broker: true, callbacks: true });
    await persistently("The gazetteer cannot be filled", () => fillGazetteer(config));
    return await ensureAdministrator(database, settings.adminUsername, settings.adminPassword);
  };
  const telemetry = async () => {
    if (clickhousePort !== undefined)
      await supervisor.start(clickhousePart(dataDir, clickhousePort, settings.clickhouseBin));
    await persistently("ClickHouse cannot be prepared", () => migrateTelemetry(config));
  };
  const broker = async () => {
    if (mqtt === undefined) return;
    const jwksUrl = `${addresses.serviceUrl}/.well-known/jwks.json`;
    await supervisor.start(
      brokerPart({ dataDir, host, ...mqtt, jwksUrl, issuer: config.JWT_ISSUER, accounts: database }),
    );
  };
  const mail = async () => {
    if (mailPort !== undefined) await supervisor.start(mailPart(dataDir, mailPort));
  };
  const worker = async () =>
    await supervisor.start(
      await form.workerPart({ host, port, url: addresses.serviceUrl, signal: supervisor.stopSignal, dataDir, env }),
    );

  const [administrator] = await Promise.all([
    step("accounts (libSQL)", accounts()),
    step("telemetry (ClickHouse)", telemetry()),
    step("broker (MQTT)", broker()),
    step("mail", mail()),
    step("passwords", supervisor.start(passwordsPart(addresses.passwords))),
    step("worker", worker()),
  ]);
  await untilReady(addresses.serviceUrl);
  const { serviceUrl, mqttUrl } = addresses;
  await Promise.all([
    supervisor.start(bridgePart({ serviceUrl, mqttUrl, apiKey: secrets.BRIDGE_KEY })),
    supervisor.start(emulatorPart({ dataDir, serviceUrl, mqttUrl, apiKey: secrets.EMULATOR_KEY })),
  ]);
  return administrator;
}

const ATTEMPTS = 5;

/** Tries again what may be run twice: a server that runs elsewhere may be a moment late, one of ours may just be revived. */
async function persistently(complaint: string, work: () => Promise<void>): Promise<void> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await work();
    } catch (error) {
      if (error instanceof Refused) throw error;
      if (attempt === ATTEMPTS) throw new Refused(`${complaint}: ${describeError(error)}`);
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
  throw new Refused(`The service did not become ready: ${answer}`);
}

function announce(settings: Settings, addresses: Addresses, administrator: FirstAdministrator, tookMs: number): void {
  const { serviceUrl, mqtt, mqttUrl } = addresses;
  const password =
    administrator.password === undefined ? "" : `   password ${bold(administrator.password)} (shown only this once)`;
  const rows = [
    ["Dashboard", bold(serviceUrl)],
    ["API docs", `${serviceUrl}/docs`],
    ["Administrator", `${administrator.username}${password}`],
    [
      "MQTT broker",
      mqtt === undefined ? mqttUrl : `mqtt://${new URL(serviceUrl).hostname}:${mqtt.tcpPort}   ${mqttUrl}`,
    ],
    ["Outgoing mail", addresses.mailPort === undefined ? addresses.mailUrl : mailFolder(settings.dataDir)],
  ];
  say(`\nReady after ${(tookMs / 1000).toFixed(1)} s.\n`);
  for (const [name = "", value] of rows) say(`  ${name.padEnd(15)} ${value}`);
  say("\nCtrl-C stops everything.\n");
}
