import { connectAsync } from "mqtt";
import { makeAgents, makeUser, type TestAgent, tokenEnding } from "../accounts.ts";
import type { Target } from "../client.ts";
import { openSocket, streamPath } from "../job-socket.ts";
import { sampleAt, TelemetryOracle, UPDATE_PATH } from "../telemetry-oracle.ts";
import type { FaultEnvironment } from "./environment.ts";
import { closeCodeOf } from "./stream-faults.ts";
import type { Outcome } from "./under-load.ts";

/**
 * Agents whose clocks are behind or ahead. Accepted samples are stored at exactly their own time. Samples too far ahead are rejected by
 * name, and delay nothing else. Tokens are valid until their end plus the allowed clock skew.
 */

const MINUTE_MS = 60_000;
const ACCEPTED_MS = [-10 * 24 * 60 * MINUTE_MS, -60 * MINUTE_MS, -MINUTE_MS, 0, 4.8 * MINUTE_MS];
const OFFSETS_MS = [...ACCEPTED_MS, 5.5 * MINUTE_MS, 24 * 60 * MINUTE_MS];
const SAMPLES = 20;
const CLOSED_WITHIN_MS = 90_000;
const TOKEN_EXPIRED = 4401;

export async function clocks(environment: FaultEnvironment): Promise<Outcome> {
  const target = environment.target();
  const prefix = `clock-${Date.now()}`;
  const agents = await makeAgents(target.dataDir, prefix, 2 * OFFSETS_MS.length);
  const oracle = new TelemetryOracle(target, prefix);
  const violations: string[] = [];
  const senders = agents.map(async (agent, i) => {
    const offsetMs = OFFSETS_MS[i % OFFSETS_MS.length] ?? 0;
    const isAccepted = ACCEPTED_MS.includes(offsetMs);
    const baseMs = Date.now() + offsetMs;
    const times = Array.from({ length: SAMPLES }, (_, n) => baseMs - n * 137);
    if (isAccepted) for (const tsMs of times) oracle.record(agent.apId, tsMs);
    if (i < OFFSETS_MS.length) violations.push(...(await sendOverHttp(target, agent, times, isAccepted)));
    else await sendOverMqtt(target, agent, times);
  });
  await Promise.all(senders);
  const { unexpected, ...verdict } = await oracle.compare();
  if (unexpected > 0) violations.push(`${unexpected} samples are stored at another time, or were to be rejected`);
  violations.push(...(await checkTokens(target)));
  const remarks = [`clocks off by ${OFFSETS_MS.map((ms) => `${ms / MINUTE_MS} min`).join(", ")}`];
  return { ...verdict, acknowledged: oracle.acknowledged, violations, remarks };
}

async function sendOverHttp({ client }: Target, agent: TestAgent, times: number[], isAccepted: boolean) {
  const response = await client.attempt(UPDATE_PATH, { token: agent.token, body: { samples: times.map(sampleAt) } });
  const status = response?.status;
  if (isAccepted) return status === 200 ? [] : [`${agent.apId}: ${status} for an allowed time`];
  const { detail } = (response?.body ?? {}) as { detail?: { loc: unknown[] }[] };
  const isNamed = status === 422 && detail?.every(({ loc }) => loc.at(-1) === "ts");
  return isNamed ? [] : [`${agent.apId}: ${status}, and the time is not named`];
}

/** The broker accepts everything; the bridge logs what the service rejects. */
async function sendOverMqtt({ urls }: Target, { apId, token }: TestAgent, times: number[]): Promise<void> {
  const client = await connectAsync(urls.mqtt ?? "", { username: apId, password: token });
  const messages = times.map((tsMs) => JSON.stringify(sampleAt(tsMs)));
  await Promise.all(messages.map((message) => client.publishAsync(`agent/${apId}/data`, message, { qos: 1 })));
  await client.endAsync();
}

async function checkTokens({ client, dataDir }: Target): Promise<string[]> {
  const user = await makeUser(dataDir, `clock-${Date.now()}@example.com`);
  const statuses: unknown[] = [];
  for (const seconds of [5, -30, -90]) {
    const token = await tokenEnding(dataDir, user, seconds);
    statuses.push((await client.attempt("/api/v1/users/me", { token }))?.status);
  }
  const token = await tokenEnding(dataDir, user, 3);
  const socket = await openSocket({ url: client.url, path: streamPath(crypto.randomUUID()), token });
  const code = await closeCodeOf(socket, CLOSED_WITHIN_MS);
  return [
    ...(String(statuses) === "200,200,401" ? [] : [`tokens that end in 5, -30 and -90 s get ${statuses}`]),
    ...(code === TOKEN_EXPIRED ? [] : [`a socket whose token expired was closed with ${code}`]),
  ];
}
