import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { LISTENING } from "../../bridge/subscriber.ts";
import type { Component } from "../supervisor.ts";

export const EMULATOR_APP = "emulator";

export interface EmulatorOptions {
  dataDir: string;
  serviceUrl: string;
  mqttUrl: string;
  apiKey: string;
}

/** The emulator, which runs the emulated access points. */
export function emulatorComponent({ dataDir, serviceUrl, mqttUrl, apiKey }: EmulatorOptions): Component {
  return {
    name: "emulator",
    command: process.execPath,
    args: [fileURLToPath(new URL("../../emulator/main.ts", import.meta.url))],
    env: {
      SERVICE_URL: serviceUrl,
      MQTT_URL: mqttUrl,
      EMULATOR_APP,
      EMULATOR_KEY: apiKey,
      EMULATOR_ID: "local",
      EMULATOR_DIR: join(dataDir, "emulator"),
    },
    ready: async (lastLines) => lastLines.includes(LISTENING),
    graceMs: 2_000,
    display: (line) => (line === LISTENING || line.startsWith("Waiting for") ? undefined : line),
  };
}
