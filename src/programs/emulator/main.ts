import { hostname } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { parseArgs } from "node:util";
import { LISTENING } from "../bridge/subscriber.ts";
import { print, runCommand, UserError } from "../shared/cli.ts";
import { CONFIG_HELP, CONFIG_OPTION, loadConfiguration } from "../shared/config-file.ts";
import { interruption } from "../shared/interruption.ts";
import { BrokerLink } from "./broker-link.ts";
import { EmulatorService } from "./emulator-client.ts";
import { JobFiles } from "./job-files.ts";
import { type PartMessage, readPart } from "./part-message.ts";
import { runPart } from "./part-runner.ts";

const HELP = `npm run emulator [-- <options>]

Runs the emulated access points that users spin up: logs them in, has them report every second, obey commands and answer them, and tells
the job's readers how far it has come. Several can run side by side; a part of a job is the first one's to claim it. After a restart it
goes on with what it had begun.

  ${CONFIG_HELP}

Settings:
  SERVICE_URL    the service (http://127.0.0.1:8787)
  MQTT_URL       the broker (mqtt://127.0.0.1:1883)
  EMULATOR_APP   the name of a third-party app with the permissions "callbacks" and "broker" (emulator)
  EMULATOR_KEY   its api key
  EMULATOR_ID    tells several emulators apart (this machine's name)
  EMULATOR_DIR   where it keeps the jobs that it has begun, credentials included (.data/emulator)

\`npm run dev\` and \`npm start\` run one by themselves.`;

async function main(): Promise<void> {
  const { values } = parseArgs({
    options: { help: { type: "boolean", short: "h", default: false }, ...CONFIG_OPTION },
  });
  if (values.help) return print(HELP);
  loadConfiguration(values.config);
  const { SERVICE_URL, MQTT_URL, EMULATOR_APP, EMULATOR_KEY, EMULATOR_ID, EMULATOR_DIR } = process.env;
  if (!EMULATOR_KEY) throw new UserError("EMULATOR_KEY is missing: the api key of the emulator's app. Try --help.");
  const id = EMULATOR_ID || hostname();
  const service = new EmulatorService({
    url: SERVICE_URL || "http://127.0.0.1:8787",
    appName: EMULATOR_APP || "emulator",
    apiKey: EMULATOR_KEY,
  });
  const files = new JobFiles(EMULATOR_DIR || join(".data", "emulator"));
  const signal = interruption();

  const insist = async (ask: () => Promise<unknown>): Promise<void> => {
    while (!signal.aborted) {
      try {
        await ask();
        return;
      } catch (error) {
        print(`Waiting for the service: ${(error as Error).message}`);
        await sleep(1_000, undefined, { signal }).catch(() => {});
      }
    }
  };
  await insist(() => service.logIn());
  if (signal.aborted) return print("Stopped.");
  const link = new BrokerLink({
    url: MQTT_URL || "mqtt://127.0.0.1:1883",
    clientId: `emulator-${id}`,
    service,
    signal,
  });
  const running = new Map<string, Promise<void>>();
  const take = (part: PartMessage): void => {
    const name = `${part.job_number} ${part.part}`;
    // Published again until it is claimed: once is enough.
    if (running.has(name)) return;
    const run = runPart({ part, id, service, link, files, signal })
      .catch((error: unknown) => print(`${name}: ${(error as Error).message}`))
      .finally(() => running.delete(name));
    running.set(name, run);
  };
  link.onSpinup = (payload) => {
    const part = readPart(payload);
    if (part === undefined) print("A message that is no job was passed over.");
    else take(part);
  };
  for (const part of files.parts()) take(part);
  await insist(() => link.connect());
  if (!signal.aborted) {
    print(LISTENING);
    await new Promise((resolve) => signal.addEventListener("abort", resolve, { once: true }));
  }
  await Promise.all(running.values());
  await link.close();
  print("Stopped.");
}

await runCommand(main);
