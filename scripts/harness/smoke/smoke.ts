import { randomBytes } from "node:crypto";
import { print } from "../../../src/programs/shared/cli.ts";
import { Api, unexpected } from "../api.ts";
import { type Credentials, makeCallers, refuses, signIn } from "./account-steps.ts";
import { obeysOverMqtt } from "./broker-steps.ts";
import { Made } from "./cleanup.ts";
import { spinsUp } from "./emulator-steps.ts";
import { describesItself, isReady, showsDashboard, showsKeys } from "./service-steps.ts";
import { Steps } from "./steps.ts";
import { passesOnCallbacks, streamsHistory } from "./stream-steps.ts";
import { onboards, pointsFrom, readsBack, reportsBatch, reportsOnce } from "./telemetry-steps.ts";

/** Uses a running service as everybody does who is to use it, with accounts that are gone afterwards. */

export interface SmokeOptions {
  url: string;
  admin: Credentials;
  /** The broker, as agents reach it. */
  mqttUrl?: string | undefined;
  withEmulator?: boolean | undefined;
  signal: AbortSignal;
}

/** More than one message of a stream holds. */
const HISTORY_POINTS = 6_000;
const RECENT_POINTS = 120;
const HOUR_MS = 3_600_000;

/** How many steps it took. Fails with the first one that fails; everything that was made is removed in any case. */
export async function smoke({ url, admin, mqttUrl, withEmulator, signal }: SmokeOptions): Promise<number> {
  const api = new Api(url, signal);
  const steps = new Steps(signal);
  const made = new Made();
  const name = `smoke-${Date.now().toString(36)}-${randomBytes(3).toString("hex")}`;

  await steps.step("it is alive", () => api.call("GET", "/healthz"));
  await steps.step("it is ready: stores and broker answer", () => isReady(api));
  await steps.step("it describes itself", () => describesItself(api));
  await steps.step("it shows its public keys", () => showsKeys(api));
  await steps.step("the dashboard is there, with its files", () => showsDashboard(api));
  const adminToken = await steps.step("the administrator signs in", () => signIn(api, admin));
  try {
    const callers = await steps.step("a user, an agent and an app are made, and log in", () =>
      makeCallers(api, made, adminToken, name),
    );
    await steps.step("who may not is refused: 401, 403, 422", () => refuses(api, callers));
    await steps.step("the agent onboards", () => onboards(api, callers));
    await steps.step("it reports, and that is read back", () => reportsOnce(api, callers, Date.now()));
    const recent = pointsFrom(Date.now() - RECENT_POINTS * 1_000, 1_000, RECENT_POINTS);
    await steps.step(`it reports a batch of ${RECENT_POINTS}`, () => reportsBatch(api, callers, "recent", recent));
    await steps.step("the user and the app read the same, exactly", () => readsBack(api, callers, "recent", recent));
    const past = pointsFrom(Date.now() - HOUR_MS, 500, HISTORY_POINTS);
    await steps.step(`it reports a backlog of ${HISTORY_POINTS}`, () => reportsBatch(api, callers, "past", past));
    await steps.step("a history stream is read over two connections, exactly", () =>
      streamsHistory(api, made, callers, "past", past),
    );
    await steps.step("an app's callbacks come to the reader, once", () => passesOnCallbacks(api, made, callers, name));
    if (mqttUrl !== undefined) {
      await steps.step("a command goes over MQTT and is answered; a report comes", () =>
        obeysOverMqtt(api, made, callers, mqttUrl),
      );
    }
    if (withEmulator) await steps.step("emulated access points report", () => spinsUp(api, made, callers));
  } finally {
    await removeAll(new Api(url), made, adminToken, name);
  }
  await steps.step("what was removed is gone", async () => {
    const answer = await api.send("GET", `/api/v1/agents/${name}`, { token: adminToken });
    if (answer.status !== 404) throw unexpected("The removed agent", answer);
  });
  return steps.count;
}

/** Also when the run was cut short: hence not one of its steps. */
async function removeAll(api: Api, made: Made, adminToken: string, name: string): Promise<void> {
  const left = await made.remove(api, adminToken);
  for (const fault of left) print(`! not removed: ${fault}`);
  if (left.length === 0) print(`✓ all accounts and jobs named ${name} are removed`);
  else process.exitCode = 1;
}
