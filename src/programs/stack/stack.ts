import { parseArgs } from "node:util";
import { BadConfiguration, parseEnv } from "../../env.ts";
import { bold, print, runCommand, UserError } from "../shared/cli.ts";
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
import type { StackForm } from "./types.ts";

/** The whole product on one machine: the stores, the broker and, in one of two forms, the Worker. */

const OPTIONS = {
  ...CONFIG_OPTION,
  reset: { type: "boolean", default: false },
  help: { type: "boolean", short: "h", default: false },
} as const;

export async function runStack(form: StackForm): Promise<void> {
  await runCommand(async () => {
    const { values } = parseArgs({ options: OPTIONS });
    if (values.help) return print(form.help);
    loadConfiguration(values.config);
    await run(form, values.reset).catch((error: unknown) => {
      throw error instanceof BadConfiguration ? new UserError(error.message) : error;
    });
  });
  // A start that was cut short may still be waiting for parts that are gone by now.
  process.exit();
}

async function run(form: StackForm, reset: boolean): Promise<void> {
  const startedMs = Date.now();
  const settings = readSettings(process.env, form.defaults);
  // Whatever the parts write is for this user's eyes only: also where the folder itself was made by somebody else.
  process.umask(0o077);
  const folder = openDataFolder(settings.dataDir, { reset, keepSecrets: settings.libsqlUrl !== undefined });
  let urls: Record<string, string> = {};
  const supervisor = new Supervisor(() => folder.record(supervisor.pids, urls));
  const stopRequested = untilStopped();

  try {
    const addresses = await chooseAddresses(settings, form.socket?.());
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
    const running = startComponents(form, settings, addresses, { env, config, secrets }, supervisor);
    const administrator = await Promise.race([running, supervisor.fatal, stopRequested]);
    if (administrator !== STOPPED) {
      announce(settings, addresses, administrator, Date.now() - startedMs);
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

const STOPPED = Symbol("stopped");

function untilStopped(): Promise<typeof STOPPED> {
  return new Promise((resolve) => {
    // Not `once`: npm passes the terminal's Ctrl-C on a second time, and that must not end us before the parts have ended.
    for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) process.on(signal, () => resolve(STOPPED));
    // Whoever read our lines has gone. Without this, the next line would end us at once and leave the parts behind.
    for (const stream of [process.stdout, process.stderr]) stream.on("error", () => resolve(STOPPED));
  });
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
    ["Outgoing mail", addresses.mail === undefined ? addresses.mailUrl : mailFolder(settings.dataDir)],
  ];
  print(`\nReady after ${(tookMs / 1000).toFixed(1)} s.\n`);
  for (const [name = "", value] of rows) print(`  ${name.padEnd(15)} ${value}`);
  print("\nCtrl-C stops everything.\n");
}
