import { parseArgs } from "node:util";
import { print, runCommand, UserError } from "../../../src/programs/shared/cli.ts";
import { CLEANUP_NOTICE, interruption } from "../../../src/programs/shared/interruption.ts";
import { smoke } from "./smoke.ts";

const HELP = `npm run smoke -- --url <url>

Uses a running service, deployed or local, as everybody does who is to use it: the dashboard's files, logging in, telemetry and charts,
history streams, callbacks. The accounts for that it makes itself, and removes them in the end, also when something fails or at
Ctrl-C. What stays is what they did: entries of the audit trail, and telemetry until its time is over.

  --url <url>    the service
  --mqtt <url>   the broker as agents reach it: also sends a command over it and has a report come through the bridge
  --emulator     also spins up three emulated access points, which takes a running emulator

  SMOKE_USERNAME, SMOKE_PASSWORD   an administrator's, from the environment

Ends with 0 when all is well, 1 when something is not, 130 after Ctrl-C.`;

const OPTIONS = {
  help: { type: "boolean", short: "h" },
  url: { type: "string" },
  mqtt: { type: "string" },
  emulator: { type: "boolean" },
} as const;

const isUrl = (text: string, ...protocols: string[]): boolean =>
  URL.canParse(text) && protocols.includes(new URL(text).protocol);

async function main(): Promise<void> {
  const { help, url, mqtt: mqttUrl, emulator: withEmulator } = parseArgs({ options: OPTIONS }).values;
  if (help) return print(HELP);
  const { SMOKE_USERNAME: username, SMOKE_PASSWORD: password } = process.env;
  if (url === undefined || !isUrl(url, "http:", "https:")) throw new UserError("Name the service: --url https://…");
  if (mqttUrl !== undefined && !isUrl(mqttUrl, "mqtt:", "mqtts:", "ws:", "wss:"))
    throw new UserError("--mqtt takes a URL that begins with mqtt://, mqtts://, ws:// or wss://.");
  if (!username || !password)
    throw new UserError("SMOKE_USERNAME and SMOKE_PASSWORD must be an administrator's. Try --help.");

  const signal = interruption(CLEANUP_NOTICE);
  const startedMs = Date.now();
  try {
    const admin = { username, password };
    const count = await smoke({ url: url.replace(/\/+$/, ""), admin, mqttUrl, withEmulator, signal });
    print(`All is well: ${count} steps in ${((Date.now() - startedMs) / 1_000).toFixed(1)} s.`);
  } catch (error) {
    signal.throwIfAborted();
    throw error instanceof UserError ? error : new UserError(reasonOf(error));
  }
}

/** Of a connection that was refused, `fetch` keeps the reason behind "fetch failed". */
function reasonOf(error: unknown): string {
  const { message, cause } = error as Error;
  return cause instanceof Error ? `${message}: ${cause.message}` : message;
}

await runCommand(main);
