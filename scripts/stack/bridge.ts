import { fileURLToPath } from "node:url";
import { createAppStore } from "../../src/accounts/app-store.ts";
import { createDatabase } from "../../src/accounts/database.ts";
import { createApiKeys } from "../../src/auth/api-keys.ts";
import type { Config } from "../../src/env.ts";
import { LISTENING } from "../bridge/broker-listener.ts";
import type { Part } from "./supervisor.ts";

const APP_NAME = "bridge";
const BY = { kind: "console", name: "start", requestId: "" } as const;

export interface BridgeOptions {
  serviceUrl: string;
  mqttUrl: string;
  apiKey: string;
}

/** The bridge from the broker to the service. */
export function bridgePart({ serviceUrl, mqttUrl, apiKey }: BridgeOptions): Part {
  return {
    name: "bridge",
    command: process.execPath,
    args: [fileURLToPath(new URL("../bridge.ts", import.meta.url))],
    env: { SERVICE_URL: serviceUrl, MQTT_URL: mqttUrl, BRIDGE_APP: APP_NAME, BRIDGE_KEY: apiKey, BRIDGE_ID: "local" },
    // From then on the broker keeps what agents say for it, whether it is there or not.
    ready: async (lastLines) => lastLines.includes(LISTENING),
    graceMs: 2_000,
    shows: (line) => line !== LISTENING && !line.startsWith("Waiting for"),
  };
}

/** Makes the bridge's account, or gives it the key of this stack. */
export async function ensureBridgeApp(config: Config, apiKey: string): Promise<void> {
  const apps = createAppStore(createDatabase({ url: config.LIBSQL_URL, authToken: config.LIBSQL_AUTH_TOKEN }));
  const apiKeys = createApiKeys(config.ENCRYPTION_KEY);
  const existing = await apps.find(APP_NAME);
  if (existing === undefined) {
    const id = crypto.randomUUID();
    const permissions = { agents: false, data: false, commands: false, emulator: false, broker: true };
    await apps.insert({ id, appName: APP_NAME, sealedApiKey: await apiKeys.seal(apiKey, id), permissions }, BY);
  } else if ((await apiKeys.open(existing.sealedApiKey, existing.id).catch(() => undefined)) !== apiKey) {
    await apps.update(existing, { sealedApiKey: await apiKeys.seal(apiKey, existing.id) }, BY);
  }
}
