import { hostname } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { LISTENING } from "../bridge/subscriber.ts";
import { parseCommand, print, runCommand, UserError } from "../shared/cli.ts";
import { CONFIG_OPTION, loadConfiguration } from "../shared/config-file.ts";
import { interruption } from "../shared/interruption.ts";
import { BrokerLink } from "./broker-link.ts";
import { EmulatorClient } from "./emulator-client.ts";
import { JobFiles } from "./job-files.ts";
import { type PartMessage, readPart } from "./part-message.ts";
import { runPart } from "./part-runner.ts";

const COMMAND = {
  name: "npm run emulator",
  summary: `Runs the emulated access points that users spin up. They log in, report every second and execute commands. The emulator
    reports the progress of the job to the controller.

    Several emulators can run side by side: the first one to claim a part of a job runs it. After a restart, an emulator continues the
    parts that it had started.`,
  options: CONFIG_OPTION,
  sections: {
    Settings: {
      SERVICE_URL: "URL of the controller (default: http://127.0.0.1:8787)",
      MQTT_URL: "URL of the broker, or of its nodes, separated by commas (default: mqtt://127.0.0.1:1883)",
      EMULATOR_APP: 'Name of a third-party app with the permissions "callbacks" and "broker" (default: emulator)',
      EMULATOR_KEY: "API key of that app (required)",
      EMULATOR_ID: "Unique name of this emulator (default: the name of this machine)",
      EMULATOR_DIR: "Folder for the jobs in progress, including their credentials (default: .data/emulator)",
    },
  },
  notes: "npm run dev and npm start run an emulator themselves.",
} as const;

const RETRY_MS = 1_000;

async function main(): Promise<void> {
  const command = parseCommand(COMMAND);
  if (command === undefined) return;
  loadConfiguration(command.values.config);
  const { SERVICE_URL, MQTT_URL, EMULATOR_APP, EMULATOR_KEY, EMULATOR_ID, EMULATOR_DIR } = process.env;
  if (!EMULATOR_KEY)
    throw new UserError(`Set EMULATOR_KEY to the API key of the emulator's app. See ${COMMAND.name} -- --help.`);
  const emulatorId = EMULATOR_ID || hostname();
  const controller = new EmulatorClient({
    url: SERVICE_URL || "http://127.0.0.1:8787",
    appName: EMULATOR_APP || "emulator",
    apiKey: EMULATOR_KEY,
  });
  const files = new JobFiles(EMULATOR_DIR || join(".data", "emulator"));
  const signal = interruption();

  const retryUntilStopped = async (work: () => Promise<unknown>): Promise<void> => {
    while (!signal.aborted) {
      try {
        await work();
        return;
      } catch (error) {
        print(`Waiting for the controller: ${(error as Error).message}`);
        await sleep(RETRY_MS, undefined, { signal }).catch(() => {});
      }
    }
  };
  await retryUntilStopped(() => controller.logIn());
  if (signal.aborted) return print("Stopped.");
  const url = MQTT_URL || "mqtt://127.0.0.1:1883";
  const link = new BrokerLink({ url, clientId: `emulator-${emulatorId}`, controller, signal });
  const running = new Map<string, Promise<void>>();
  const start = (part: PartMessage): void => {
    const id = `${part.job_number} ${part.part}`;
    // The controller publishes a part again until it is claimed.
    if (running.has(id)) return;
    const run = runPart({ part, emulatorId, controller, link, files, signal })
      .catch((error: unknown) => print(`Job ${part.job_number}, part ${part.part} failed: ${(error as Error).message}`))
      .finally(() => running.delete(id));
    running.set(id, run);
  };
  link.onSpinup = (payload) => {
    const part = readPart(payload);
    if (part === undefined) print("Ignored a message that is not a valid job.");
    else start(part);
  };
  for (const part of files.parts()) start(part);
  await retryUntilStopped(() => link.connect());
  if (!signal.aborted) {
    print(LISTENING);
    await new Promise((resolve) => signal.addEventListener("abort", resolve, { once: true }));
  }
  await Promise.all(running.values());
  await link.close();
  print("Stopped.");
}

await runCommand(main);
