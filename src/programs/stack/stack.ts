import { BadConfiguration, parseEnv } from "../../env.ts";
import { bold, parseCommand, print, runCommand, UserError } from "../shared/cli.ts";
import { CONFIG_OPTION, loadConfiguration } from "../shared/config-file.ts";
import { readSettings, type Settings } from "../shared/settings.ts";
import { notifyReady } from "../shared/system.ts";
import { type Addresses, chooseAddresses, workerEnvironment } from "./addresses.ts";
import type { FirstAdministrator } from "./administrator.ts";
import { withLogin } from "./components/clickhouse-access.ts";
import { mailFolder } from "./components/mail-catcher-process.ts";
import { openDataFolder } from "./data-folder.ts";
import { loadSecrets } from "./stack-secrets.ts";
import { startComponents } from "./start.ts";
import { Supervisor } from "./supervisor.ts";
import type { StackMode } from "./types.ts";

/** The whole product on one machine: the stores, the broker, the Worker and the programs around it. */

const OPTIONS = {
  ...CONFIG_OPTION,
  reset: { type: "boolean", description: "Delete all data and keys first" },
} as const;

const NOTES = `Settings are environment variables: PORT, HOST, DATA_DIR, ADMIN_USERNAME, ADMIN_PASSWORD, MQTT_PORT, MQTT_WS_PORT, LIBSQL_URL,
  CLICKHOUSE_URL, MQTT_URL and more. docs/settings.md explains them. docs/self-hosting/controller.conf is a configuration file with
  all of them.`;

export async function runStack(mode: StackMode): Promise<void> {
  const { name, summary } = mode;
  await runCommand(async () => {
    const command = parseCommand({ name, summary, options: OPTIONS, notes: NOTES });
    if (command === undefined) return;
    loadConfiguration(command.values.config);
    await run(mode, command.values.reset).catch((error: unknown) => {
      throw error instanceof BadConfiguration ? new UserError(error.message) : error;
    });
  });
  // An interrupted start may still wait for components that no longer run.
  process.exit();
}

async function run(mode: StackMode, reset: boolean): Promise<void> {
  const startedMs = Date.now();
  const settings = readSettings(process.env, mode.defaults);
  // Only this user may read the files of the components, even if another program created the data folder.
  process.umask(0o077);
  const folder = openDataFolder(settings.dataDir, { reset, keepSecrets: settings.libsqlUrl !== undefined });
  let urls: Record<string, string> = {};
  const supervisor = new Supervisor(() => folder.record(supervisor.pids, urls));
  const stopRequested = untilStopRequested();

  try {
    const addresses = await chooseAddresses(settings, mode.socket?.());
    urls = {
      service: addresses.serviceUrl,
      libsql: addresses.libsqlUrl,
      clickhouse:
        addresses.clickhouse === undefined
          ? addresses.clickhouseUrl
          : withLogin(addresses.clickhouseUrl, addresses.clickhouse.access.owner),
      mqtt: addresses.mqttUrl,
    };
    const secrets = await loadSecrets(settings.dataDir);
    const env = workerEnvironment(settings, addresses, secrets);
    const config = parseEnv(env);
    const starting = startComponents(mode, settings, addresses, { env, config, secrets }, supervisor);
    const administrator = await Promise.race([starting, supervisor.fatal, stopRequested]);
    if (administrator !== STOP) {
      printAddresses(settings, addresses, administrator, Date.now() - startedMs);
      notifyReady();
      await Promise.race([supervisor.fatal, stopRequested]);
    }
    print("Stopping.");
  } finally {
    await supervisor.stop();
    folder.release();
  }
  print("Stopped.");
}

const STOP = Symbol("stop");

function untilStopRequested(): Promise<typeof STOP> {
  return new Promise((resolve) => {
    // Not `once`: npm sends the terminal's Ctrl-C a second time, which must not end this process before its components.
    for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) process.on(signal, () => resolve(STOP));
    // The reader of the output is gone. Without a handler, the next line would end this process and leave the components running.
    for (const stream of [process.stdout, process.stderr]) stream.on("error", () => resolve(STOP));
  });
}

function printAddresses(
  settings: Settings,
  { serviceUrl, mqtt, mqttUrl, mail, mailUrl }: Addresses,
  administrator: FirstAdministrator,
  durationMs: number,
): void {
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
    ["Outgoing mail", mail === undefined ? mailUrl : mailFolder(settings.dataDir)],
  ];
  print(`\nReady after ${(durationMs / 1000).toFixed(1)} s.\n`);
  for (const [name = "", value] of rows) print(`  ${name.padEnd(15)} ${value}`);
  print("\nCtrl-C stops everything.\n");
}
