import { setTimeout as sleep } from "node:timers/promises";
import { connectAsync } from "mqtt";
import { makeAgents, makeUser, type TestAgent } from "../accounts.ts";
import type { Target } from "../client.ts";
import { until } from "../product.ts";
import { startTelemetry, UPDATE_PATH } from "../telemetry-oracle.ts";
import { problemsOf } from "../workload.ts";
import type { FaultEnvironment } from "./environment.ts";
import type { Outcome } from "./under-load.ts";

/** Agents that send invalid or excessive data beside others that report steadily. The others must not notice. */

const STEADY = 20;
const HOSTILE = 5;
const LASTS_MS = 10_000;
const PAUSE_MS = 200;
const DAY_MS = 86_400_000;
/** Two seconds are guaranteed; the machine, which runs everything, may add one. */
const MAX_WAIT_MS = 3_000;

/** What a hostile agent sends over HTTP, and which fields the service must reject by name. */
interface HostileReports {
  body(n: number): object;
  isRejected(field: string): boolean;
}

const LONE_SURROGATES: HostileReports = {
  body: (n) => ({ payload: { [`name${n}\ud800`]: 1, low: "\udc00", high: "x\ud83d", good: n } }),
  isRejected: (field) => field !== "good",
};

const BACKLOGS: HostileReports = {
  // A thousand samples, one per day: most of them are older than telemetry is stored.
  body: (n) => {
    const nowMs = Date.now();
    return {
      samples: Array.from({ length: 1_000 }, (_, day) => ({ ts: nowMs - day * DAY_MS - n, payload: { a: n, t: "x" } })),
    };
  },
  isRejected: (field) => /^samples\.\d+\.ts$/.test(field),
};

export const loneSurrogates = (environment: FaultEnvironment, signal: AbortSignal): Promise<Outcome> =>
  besideSteadyAgents(environment, signal, LONE_SURROGATES);

export const backlogs = (environment: FaultEnvironment, signal: AbortSignal): Promise<Outcome> =>
  besideSteadyAgents(environment, signal, BACKLOGS);

async function besideSteadyAgents(
  environment: FaultEnvironment,
  signal: AbortSignal,
  hostile: HostileReports,
): Promise<Outcome> {
  const steady = environment.target();
  const { client, dataDir } = environment.target();
  const agents = await makeAgents(dataDir, `hostile-${Date.now()}`, HOSTILE);
  const load = await startTelemetry(steady, { channel: "HTTP", prefix: "steady", agents: STEADY, pauseMs: PAUSE_MS });
  const violations = new Set<string>();
  const endMs = performance.now() + LASTS_MS;
  let calls = 0;
  const offend = async ({ token }: TestAgent): Promise<void> => {
    for (; performance.now() < endMs && !signal.aborted; calls++) {
      const response = await client.attempt(UPDATE_PATH, { token, body: hostile.body(calls) });
      const { rejected = [] } = (response?.body ?? {}) as { rejected?: { field: string }[] };
      if (response?.status !== 200) violations.add(`a hostile agent gets ${response?.status ?? "no response"}`);
      else if (rejected.length === 0 || !rejected.every(({ field }) => hostile.isRejected(field)))
        violations.add("the response does not name the rejected fields");
    }
  };
  await Promise.all(agents.map(offend));
  await load.stop();
  const { statuses, unanswered, slowest } = steady.client;
  for (const status of statuses.keys()) if (status !== 200) violations.add(`a steady agent gets ${status}`);
  if (unanswered > 0) violations.add("a steady agent gets no response");
  const waited = `the longest wait of a steady agent was ${Math.round(slowest.ms)} ms`;
  if (slowest.ms > MAX_WAIT_MS) violations.add(waited);
  const verdict = await load.settle();
  return {
    acknowledged: load.acknowledged,
    recoveredMs: 0,
    ...verdict,
    violations: [...problemsOf(load.name, verdict), ...violations],
    remarks: [`${calls} hostile calls; ${waited}`],
  };
}

interface HostileMessage {
  topic: "data" | "result" | "status";
  payload: string | Buffer;
}

const nested = (levels: number): string => `${'{"a":'.repeat(levels - 1)}{}${"}".repeat(levels - 1)}`;
const data = (payload: string | Buffer): HostileMessage => ({ topic: "data", payload });

/** Messages that are rejected as a whole. */
const REJECTED: readonly HostileMessage[] = [
  ...[nested(31), nested(100_000), "{", "", "7", Buffer.from([0x22, 0xff, 0x22])].map(data),
  data('{"ap_id":"another","payload":{"x":1}}'),
  data(JSON.stringify({ payload: { x: "x".repeat(1024 * 1024 - 100) } })),
  { topic: "result", payload: "null" },
  { topic: "result", payload: `{"job_number":"x","status":"done","data":${nested(40)}}` },
  { topic: "status", payload: "\u0001".repeat(180_000) },
];
/** Messages that may be stored in part. */
const ODD: readonly HostileMessage[] = [
  data('{"payload":{"text":"\\ud800"}}'),
  data('{"payload":{"text":"\\udc00","x":1}}'),
  data('{"payload":{"__proto__":{"x":1},"y":1e999}}'),
  { topic: "status", payload: "\u0000" },
];

export interface HostileOptions {
  /** How often each message is sent. */
  rounds: number;
  pauseMs: number;
}

const COUNTED_WITHIN_MS = 60_000;

/** Publishes messages that cannot be stored: nothing of other agents is lost, and the service counts the rejected messages. */
export async function hostileMessages(target: Target, { rounds, pauseMs }: HostileOptions): Promise<Outcome> {
  const prefix = `hostile-${Date.now()}`;
  const admin = await makeUser(target.dataDir, `${prefix}@example.com`, "none", ["admin"]);
  const before = await countMessages(target, admin.token);
  const agents = await makeAgents(target.dataDir, prefix, 2);
  const load = await startTelemetry(target, { channel: "MQTT", prefix: "among-hostile", agents: 8, pauseMs: 20 });
  await Promise.all(
    agents.map(async ({ apId, token }) => {
      const client = await connectAsync(target.urls.mqtt ?? "", { username: apId, password: token });
      for (const { topic, payload } of Array.from({ length: rounds }, () => [...REJECTED, ...ODD]).flat()) {
        await client.publishAsync(`agent/${apId}/${topic}`, payload, { qos: 1 });
        await sleep(pauseMs);
      }
      await client.endAsync();
    }),
  );
  await load.stop();
  const verdict = await load.settle();
  const expected = agents.length * rounds * REJECTED.length;
  const hostile = expected + agents.length * rounds * ODD.length;
  let rejected = 0;
  // The service retries messages that it fails at for a few seconds. They must not disturb the next row.
  await until(async () => {
    const now = await countMessages(target, admin.token);
    rejected = now.rejected - before.rejected;
    return now.accepted - before.accepted + rejected >= hostile + load.acknowledged && rejected >= expected;
  }, COUNTED_WITHIN_MS).catch(() => {});
  const uncounted = rejected >= expected ? [] : [`${rejected} messages are counted as rejected instead of ${expected}`];
  return {
    acknowledged: load.acknowledged,
    recoveredMs: 0,
    ...verdict,
    violations: [...problemsOf(load.name, verdict), ...uncounted],
    remarks: [`${hostile} hostile messages, ${rejected} rejected`],
  };
}

async function countMessages({ client }: Target, token: string): Promise<{ accepted: number; rejected: number }> {
  const { text } = await client.request("/metrics", { token });
  const of = (outcome: string): number =>
    Number(new RegExp(`^controller_bridge_messages_total\\{outcome="${outcome}"\\} (\\d+)$`, "m").exec(text)?.[1] ?? 0);
  return { accepted: of("accepted"), rejected: of("rejected") };
}
