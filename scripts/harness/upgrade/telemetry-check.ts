import { setTimeout as sleep } from "node:timers/promises";
import { connect } from "mqtt";
import * as z from "zod";
import type { StoresConfig } from "../../../src/env.ts";
import { queryRows } from "../../ops/backup/clickhouse-http.ts";
import type { TrialAgent } from "../accounts.ts";
import type { Requests } from "./requests.ts";

/** Telemetry over both ways in, with a note of what was acknowledged: that, and that once, must be there in the end. */

const PAUSE_MS = 50;
const SETTLE_MS = 60_000;

export class Acknowledged {
  readonly http = new Set<string>();
  readonly mqtt = new Set<string>();
}

export async function sendOverHttp(
  requests: Requests,
  { apId, token }: TrialAgent,
  acknowledged: Acknowledged,
  signal: AbortSignal,
): Promise<void> {
  for (let tsMs = 0; !signal.aborted; await sleep(PAUSE_MS)) {
    tsMs = Math.max(tsMs + 1, Date.now());
    const body = JSON.stringify({ ts: tsMs, payload: { n: 1 } });
    const headers = { Authorization: `Bearer ${token}`, "Content-Type": "application/json" };
    const isDone = await requests.send("telemetry", "/api/v1/agent_update/update", { method: "POST", headers, body });
    if (isDone) acknowledged.http.add(`${apId} ${tsMs}`);
  }
}

export async function sendOverMqtt(
  mqttUrl: string,
  { apId, token }: TrialAgent,
  acknowledged: Acknowledged,
  signal: AbortSignal,
): Promise<void> {
  const client = connect(mqttUrl, { username: apId, password: token, reconnectPeriod: 200 });
  client.on("error", () => {});
  const sending: Promise<void>[] = [];
  for (let tsMs = 0; !signal.aborted; await sleep(PAUSE_MS)) {
    tsMs = Math.max(tsMs + 1, Date.now());
    const key = `${apId} ${tsMs}`;
    const message = JSON.stringify({ ts: tsMs, payload: { n: 1 } });
    const sent = client.publishAsync(`agent/${apId}/data`, message, { qos: 1 });
    sending.push(
      sent.then(
        () => void acknowledged.mqtt.add(key),
        () => {},
      ),
    );
  }
  await Promise.race([Promise.all(sending), sleep(SETTLE_MS)]);
  await client.endAsync(true);
}

const Stored = z.array(z.object({ key: z.string(), n: z.coerce.number() }));
const Summed = z.tuple([z.object({ n: z.coerce.number() })]);

/** What of it is missing, and what is there more than once, when nothing more comes. */
export async function compare(
  config: StoresConfig,
  acknowledged: Acknowledged,
): Promise<{ lost: number; doubled: number }> {
  const wanted = [...acknowledged.http, ...acknowledged.mqtt];
  for (const deadlineMs = Date.now() + SETTLE_MS; ; await sleep(500)) {
    const stored = await queryRows(
      config,
      Stored,
      `SELECT concat(ap_id, ' ', toString(toUnixTimestamp64Milli(ts))) AS key, count() AS n
       FROM points_v1 WHERE startsWith(ap_id, 'upgrade-') GROUP BY key`,
    );
    const counts = new Map(stored.map(({ key, n }) => [key, n]));
    const lost = wanted.filter((key) => !counts.has(key)).length;
    if (lost > 0 && Date.now() < deadlineMs) continue;
    const [{ n: summed }] = await queryRows(
      config,
      Summed,
      "SELECT sum(n) AS n FROM minutes_v1 WHERE startsWith(ap_id, 'upgrade-')",
    );
    const copies = stored.reduce((sum, { n }) => sum + n - 1, 0);
    return { lost, doubled: copies + Math.abs(summed - stored.length) };
  }
}
