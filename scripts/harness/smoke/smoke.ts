import { randomBytes } from "node:crypto";
import { print } from "../../../src/programs/shared/cli.ts";
import { CreatedResources } from "../cleanup.ts";
import { ApiClient, unexpected } from "../client.ts";
import { type Credentials, checkRejections, createCallers, logInAsAdmin } from "./account-steps.ts";
import { checkEmulator, checkMqtt } from "./broker-steps.ts";
import { checkDashboard, checkKeys, checkOpenApi, checkReady } from "./service-steps.ts";
import { Steps } from "./steps.ts";
import { checkCallbacks, checkHistoryStream } from "./stream-steps.ts";
import { checkOnboarding, checkReport, checkSeries, pointsFrom, reportBatch } from "./telemetry-steps.ts";

export interface SmokeOptions {
  url: string;
  admin: Credentials;
  /** The broker, as agents reach it. */
  mqttUrl?: string | undefined;
  withEmulator?: boolean | undefined;
  signal: AbortSignal;
}

/** What the steps share. */
export interface SmokeContext {
  client: ApiClient;
  created: CreatedResources;
}

/** More than fits into one message of a stream. */
const HISTORY_POINTS = 6_000;
const RECENT_POINTS = 120;
const HOUR_MS = 3_600_000;

/** Returns the number of steps. Throws at the first step that fails. Deletes everything that it created in any case. */
export async function smoke({ url, admin, mqttUrl, withEmulator, signal }: SmokeOptions): Promise<number> {
  const client = new ApiClient(url, { timeoutMs: 30_000, signal });
  const created = new CreatedResources();
  const context = { client, created };
  const { step, count } = new Steps(signal);
  const name = `smoke-${Date.now().toString(36)}-${randomBytes(3).toString("hex")}`;

  await step("the service is alive", () => client.call("/healthz"));
  await step("the stores and the broker are ready", () => checkReady(client));
  await step("the API description is served", () => checkOpenApi(client));
  await step("the public keys are served", () => checkKeys(client));
  await step("the dashboard is served with its files", () => checkDashboard(client));
  const adminToken = await step("the administrator logs in", () => logInAsAdmin(client, admin));
  try {
    const callers = await step("a user, an agent and an app are created, and log in", () =>
      createCallers(context, adminToken, name),
    );
    await step("invalid requests are rejected with 401, 403 and 422", () => checkRejections(client, callers));
    await step("the agent goes on board", () => checkOnboarding(client, callers));
    await step("a report is stored and read back", () => checkReport(client, callers, Date.now()));
    const recent = pointsFrom(Date.now() - RECENT_POINTS * 1_000, 1_000, RECENT_POINTS);
    await step(`a batch of ${RECENT_POINTS} samples is stored`, () => reportBatch(client, callers, "recent", recent));
    await step("the user and the app read exactly these samples", () => checkSeries(client, callers, "recent", recent));
    const past = pointsFrom(Date.now() - HOUR_MS, 500, HISTORY_POINTS);
    await step(`a backlog of ${HISTORY_POINTS} samples is stored`, () => reportBatch(client, callers, "past", past));
    await step("a history stream delivers exactly these samples over two connections", () =>
      checkHistoryStream(context, callers, "past", past),
    );
    await step("callbacks of an app reach the reader once", () => checkCallbacks(context, callers, name));
    if (mqttUrl !== undefined)
      await step("a command and a report pass through the broker", () => checkMqtt(context, callers, mqttUrl));
    if (withEmulator) await step("emulated access points report", () => checkEmulator(context, callers));
  } finally {
    // Also after Ctrl-C, so this is not one of the steps and uses a client without the signal.
    const left = await created.remove(new ApiClient(url), adminToken);
    for (const reason of left) print(`! not deleted: ${reason}`);
    if (left.length === 0) print(`✓ all accounts and jobs named ${name} are deleted`);
    else process.exitCode = 1;
  }
  await step("deleted accounts are gone", async () => {
    const response = await client.request(`/api/v1/agents/${name}`, { token: adminToken });
    if (response.status !== 404) throw unexpected("The deleted agent", response);
  });
  return count();
}
