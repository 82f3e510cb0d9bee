import { randomBytes } from "node:crypto";
import { splitAddresses } from "../../../src/lib/addresses.ts";
import { dim, parseCommand, print, red, runCommand, toUserError, UserError } from "../../../src/programs/shared/cli.ts";
import { CLEANUP_NOTICE, interruption } from "../../../src/programs/shared/interruption.ts";
import { CreatedResources } from "../cleanup.ts";
import { ApiClient, unexpected } from "../client.ts";
import { checkCallbacks, checkEmulator, checkMqtt } from "./broker-steps.ts";
import { checkRejections, createCallers, logInAsAdmin, PUBLIC_STEPS } from "./service-steps.ts";
import type { SmokeContext } from "./steps.ts";
import { checkHistory, checkOnboarding, checkReport, checkSeries } from "./telemetry-steps.ts";

const SPEC = {
  name: "npm run smoke",
  summary: `Tests a running service, deployed or local: the files of the dashboard, logins, telemetry and charts, history streams and
callbacks. Creates accounts for the test and deletes them at the end, also after a failure or Ctrl-C. Entries of the audit trail
remain, and telemetry until it expires.`,
  options: {
    url: { type: "string", value: "url", description: "The service" },
    mqtt: { type: "string", value: "url", description: "Also send a command and a report through this broker" },
    emulator: { type: "boolean", description: "Also spin up three access points, which needs a running emulator" },
  },
  sections: { Settings: { "SMOKE_USERNAME, SMOKE_PASSWORD": "An administrator of the service" } },
  notes: "Exits with 0 if all steps pass, with 1 if one fails, and with 130 after Ctrl-C.",
} as const;

const isUrl = (text: string, ...protocols: string[]): boolean =>
  URL.canParse(text) && protocols.includes(new URL(text).protocol);

type Steps = Record<string, (context: SmokeContext) => Promise<unknown>>;

const STEPS: Steps = {
  "invalid requests are rejected with 401, 403 and 422": checkRejections,
  "the agent goes on board": checkOnboarding,
  "a report is stored and read back": checkReport,
  "a batch of samples is stored, and the user and the app read exactly these": checkSeries,
  "a backlog is stored, and a history stream delivers exactly its samples over two connections": checkHistory,
  "callbacks of an app reach the reader once": checkCallbacks,
};

/** Throws at the first step that fails. Deletes everything that it created in any case. */
async function smoke(client: ApiClient, logIn: () => Promise<string>, steps: Steps): Promise<void> {
  const startedMs = performance.now();
  let count = 0;
  /** Prints a line for the step, with its time. */
  const step = async <T>(name: string, work: () => Promise<T>): Promise<T> => {
    client.signal.throwIfAborted();
    const stepMs = performance.now();
    const took = () => dim(`${Math.round(performance.now() - stepMs)} ms`);
    try {
      const outcome = await work();
      count++;
      print(`✓ ${name}  ${took()}`);
      return outcome;
    } catch (error) {
      if (!client.signal.aborted) print(`${red(`✗ ${name}`)}  ${took()}`);
      throw error;
    }
  };
  const created = new CreatedResources();
  const name = `smoke-${Date.now().toString(36)}-${randomBytes(3).toString("hex")}`;
  for (const [what, check] of Object.entries(PUBLIC_STEPS)) await step(what, () => check(client));
  const token = await step("the administrator logs in", logIn);
  try {
    const create = () => createCallers({ client, created, name }, token);
    const context = await step("a user, an agent and an app are created, and log in", create);
    for (const [what, check] of Object.entries(steps)) await step(what, () => check(context));
  } finally {
    // Also after Ctrl-C, so this is not one of the steps and uses a client without the signal.
    const left = await created.remove(new ApiClient(client.url), token);
    for (const reason of left) print(`! not deleted: ${reason}`);
    if (left.length === 0) print(`✓ all accounts and jobs named ${name} are deleted`);
    else process.exitCode = 1;
  }
  await step("deleted accounts are gone", async () => {
    const response = await client.request(`/api/v1/agents/${name}`, { token });
    if (response.status !== 404) throw unexpected("The deleted agent", response);
  });
  print(`All ${count} steps passed in ${((performance.now() - startedMs) / 1_000).toFixed(1)} s.`);
}

await runCommand(async () => {
  const command = parseCommand(SPEC);
  if (command === undefined) return;
  const { url, mqtt, emulator } = command.values;
  const { SMOKE_USERNAME: username, SMOKE_PASSWORD: password } = process.env;
  if (url === undefined || !isUrl(url, "http:", "https:")) throw new UserError("Name the service: --url https://…");
  if (mqtt !== undefined && !splitAddresses(mqtt).every((node) => isUrl(node, "mqtt:", "mqtts:", "ws:", "wss:")))
    throw new UserError("--mqtt must be a URL that begins with mqtt://, mqtts://, ws:// or wss://.");
  if (!username || !password)
    throw new UserError("Set SMOKE_USERNAME and SMOKE_PASSWORD to the login of an administrator. See --help.");

  const signal = interruption(CLEANUP_NOTICE);
  const client = new ApiClient(url.replace(/\/+$/, ""), { timeoutMs: 30_000, signal });
  try {
    await smoke(client, () => logInAsAdmin(client, username, password), {
      ...STEPS,
      ...(mqtt !== undefined && {
        "a command and a report pass through the broker": (context) => checkMqtt(context, mqtt),
      }),
      ...(emulator && { "emulated access points report": checkEmulator }),
    });
  } catch (error) {
    signal.throwIfAborted();
    throw toUserError(error);
  }
});
