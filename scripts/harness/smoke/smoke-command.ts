import { parseCommand, print, runCommand, toUserError, UserError } from "../../../src/programs/shared/cli.ts";
import { CLEANUP_NOTICE, interruption } from "../../../src/programs/shared/interruption.ts";
import { smoke } from "./smoke.ts";

const SPEC = {
  name: "npm run smoke",
  summary: `Tests a running service, deployed or local: the files of the dashboard, logins, telemetry and charts, history streams and
callbacks. Creates accounts for the test and deletes them at the end, also after a failure or Ctrl-C. Entries of the audit trail
remain, and telemetry until it expires.`,
  options: {
    url: { type: "string", value: "url", description: "The service" },
    mqtt: {
      type: "string",
      value: "url",
      description: "The broker as agents reach it: also send a command and a report",
    },
    emulator: {
      type: "boolean",
      description: "Also spin up three emulated access points, which needs a running emulator",
    },
  },
  sections: { Settings: { "SMOKE_USERNAME, SMOKE_PASSWORD": "An administrator of the service" } },
  notes: "Exits with 0 if all steps pass, with 1 if one fails, and with 130 after Ctrl-C.",
} as const;

const isUrl = (text: string, ...protocols: string[]): boolean =>
  URL.canParse(text) && protocols.includes(new URL(text).protocol);

await runCommand(async () => {
  const command = parseCommand(SPEC);
  if (command === undefined) return;
  const { url, mqtt: mqttUrl, emulator: withEmulator } = command.values;
  const { SMOKE_USERNAME: username, SMOKE_PASSWORD: password } = process.env;
  if (url === undefined || !isUrl(url, "http:", "https:")) throw new UserError("Name the service: --url https://…");
  if (mqttUrl !== undefined && !isUrl(mqttUrl, "mqtt:", "mqtts:", "ws:", "wss:"))
    throw new UserError("--mqtt must be a URL that begins with mqtt://, mqtts://, ws:// or wss://.");
  if (!username || !password)
    throw new UserError("Set SMOKE_USERNAME and SMOKE_PASSWORD to the login of an administrator. See --help.");

  const signal = interruption(CLEANUP_NOTICE);
  const startedMs = Date.now();
  try {
    const admin = { username, password };
    const count = await smoke({ url: url.replace(/\/+$/, ""), admin, mqttUrl, withEmulator, signal });
    print(`All ${count} steps passed in ${((Date.now() - startedMs) / 1_000).toFixed(1)} s.`);
  } catch (error) {
    signal.throwIfAborted();
    throw toUserError(error);
  }
});
