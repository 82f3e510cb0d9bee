import { fileURLToPath } from "node:url";
import { LISTENING } from "../../bridge/subscriber.ts";
import type { Component } from "../supervisor.ts";

export const BRIDGE_APP = "bridge";

export interface BridgeOptions {
  serviceUrl: string;
  mqttUrl: string;
  apiKey: string;
}

/** The bridge from the broker to the controller. */
export function bridgeComponent({ serviceUrl, mqttUrl, apiKey }: BridgeOptions): Component {
  return {
    name: "bridge",
    command: process.execPath,
    args: [fileURLToPath(new URL("../../bridge/main.ts", import.meta.url))],
    env: { SERVICE_URL: serviceUrl, MQTT_URL: mqttUrl, BRIDGE_APP, BRIDGE_KEY: apiKey, BRIDGE_ID: "local" },
    // From then on the broker keeps messages for the bridge, even while the bridge is disconnected.
    ready: async (lastLines) => lastLines.includes(LISTENING),
    graceMs: 2_000,
    display: (line) => (line === LISTENING || line.startsWith("Waiting for") ? undefined : line),
  };
}
