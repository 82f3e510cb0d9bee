import { setTimeout as sleep } from "node:timers/promises";
import { connectAsync } from "mqtt";
import { makeAgents, makeUser } from "../accounts.ts";
import type { Target } from "../client.ts";
import { until } from "../product.ts";
import { startTelemetry, UPDATE_PATH } from "../telemetry-oracle.ts";
import { problemsOf, type Workload } from "../workload.ts";
import type { FaultEnvironment } from "./environment.ts";
import type { Outcome } from "./under-load.ts";

/** Agents that send invalid or excessive data beside others that report steadily. The others must not notice. */

const STEADY = { channel: "HTTP", prefix: "steady", agents: 20, pauseMs: 200 } as const;
const HOSTILE = 5;
const LASTS_MS = 10_000;
const DAY_MS = 86_400_000;
/** Two seconds are guaranteed; the machine, which runs everything, may add one. */
const MAX_WAIT_MS = 3_000;

export const loneSurrogates = besideSteadyAgents(
  (n) => ({ payload: { [`name${n}\ud800`]: 1, low: "\udc00", high: "x\ud83d", good: n } }),
  (field) => field !== "good",
);

/** Sends a thousand samples, one per day: most of them are older than telemetry is stored. */
export const backlogs = besideSteadyAgents(
  (n) => {
    const [nowMs, payload] = [Date.now(), { a: n, t: "x" }];
    return { samples: Array.from({ length: 1_000 }, (_, day) => ({ ts: nowMs - day * DAY_MS - n, payload })) };
  },
  (field) => /^samples\.\d+\.ts$/.test(field),
);

/** Returns a row whose hostile agents send these reports over HTTP. The service must reject the invalid fields by name. */
function besideSteadyAgents(report: (n: number) => object, isInvalid: (field: string) => boolean) {
  return async (environment: FaultEnvironment, signal: AbortSignal): Promise<Outcome> => {
    const [steady, { client, dataDir }] = [environment.target(), environment.target()];
    const agents = await makeAgents(dataDir, `hostile-${Date.now()}`, HOSTILE);
    const load = await startTelemetry(steady, STEADY);
    const violations = new Set<string>();
    const endMs = performance.now() + LASTS_MS;
    let calls = 0;
    const offenders = agents.map(async ({ token }) => {
      for (; performance.now() < endMs && !signal.aborted; calls++) {
        const response = await client.attempt(UPDATE_PATH, { token, body: report(calls) });
        const { rejected = [] } = (response?.body ?? {}) as { rejected?: { field: string }[] };
        if (response?.status !== 200) violations.add(`a hostile agent gets ${response?.status ?? "no response"}`);
        else if (rejected.length === 0 || !rejected.every(({ field }) => isInvalid(field)))
          violations.add("the response does not name the rejected fields");
      }
    });
    await Promise.all(offenders);
    const outcome = await endLoad(load);
    const { statuses, unanswered, slowest } = steady.client;
    for (const status of statuses.keys()) if (status !== 200) violations.add(`a steady agent gets ${status}`);
    if (unanswered > 0) violations.add("a steady agent gets no response");
    const waited = `the longest wait of a steady agent was ${Math.round(slowest.ms)} ms`;
    if (slowest.ms > MAX_WAIT_MS) violations.add(waited);
    outcome.violations.push(...violations);
    return { ...outcome, remarks: [`${calls} hostile calls; ${waited}`] };
  };
}

async function endLoad(load: Workload): Promise<Omit<Outcome, "remarks">> {
  await load.stop();
  const verdict = await load.settle();
  return { ...verdict, acknowledged: load.acknowledged, violations: problemsOf(load.name, verdict) };
}

const nested = (levels: number): string => `${'{"a":'.repeat(levels - 1)}{}${"}".repeat(levels - 1)}`;

type Message = [topic: string, payload: string | Buffer];

/** Messages that are rejected as a whole. */
const REJECTED: readonly Message[] = [
  ...[nested(31), nested(100_000), "{", "", "7"].map((payload): Message => ["data", payload]),
  ["data", Buffer.from([0x22, 0xff, 0x22])],
  ["data", '{"ap_id":"another","payload":{"x":1}}'],
  ["data", JSON.stringify({ payload: { x: "x".repeat(1024 * 1024 - 100) } })],
  ["result", "null"],
  ["result", `{"job_number":"x","status":"done","data":${nested(40)}}`],
  ["status", "\u0001".repeat(180_000)],
];
/** Messages that may be stored in part. */
const ODD: readonly Message[] = [
  ["data", '{"payload":{"text":"\\ud800"}}'],
  ["data", '{"payload":{"text":"\\udc00","x":1}}'],
  ["data", '{"payload":{"__proto__":{"x":1},"y":1e999}}'],
  ["status", "\u0000"],
];

const COUNTED_WITHIN_MS = 60_000;

type Publishing = Record<"rounds" | "pauseMs", number>;

/** Publishes all messages in each round: nothing of other agents is lost, and the service counts the rejected messages. */
export async function hostileMessages(target: Target, { rounds, pauseMs }: Publishing): Promise<Outcome> {
  const prefix = `hostile-${Date.now()}`;
  const admin = await makeUser(target.dataDir, `${prefix}@example.com`, "none", ["admin"]);
  const before = await countMessages(target, admin.token);
  const agents = await makeAgents(target.dataDir, prefix, 2);
  const load = await startTelemetry(target, { channel: "MQTT", prefix: "among-hostile", agents: 8, pauseMs: 20 });
  const messages = Array.from({ length: rounds }, () => [...REJECTED, ...ODD]).flat();
  const publishers = agents.map(async ({ apId, token }) => {
    const client = await connectAsync(target.urls.mqtt ?? "", { username: apId, password: token });
    for (const [topic, payload] of messages) {
      await client.publishAsync(`agent/${apId}/${topic}`, payload, { qos: 1 });
      await sleep(pauseMs);
    }
    await client.endAsync();
  });
  await Promise.all(publishers);
  const outcome = await endLoad(load);
  const [hostile, expected] = [agents.length * messages.length, agents.length * rounds * REJECTED.length];
  let rejected = 0;
  // The service retries messages that it fails at for a few seconds. They must not disturb the next row.
  await until(async () => {
    const now = await countMessages(target, admin.token);
    rejected = now.rejected - before.rejected;
    return now.accepted - before.accepted + rejected >= hostile + load.acknowledged && rejected >= expected;
  }, COUNTED_WITHIN_MS).catch(() => {});
  if (rejected < expected)
    outcome.violations.push(`${rejected} messages are counted as rejected instead of ${expected}`);
  return { ...outcome, remarks: [`${hostile} hostile messages, ${rejected} rejected`] };
}

async function countMessages({ client }: Target, token: string): Promise<{ accepted: number; rejected: number }> {
  const { text } = await client.request("/metrics", { token });
  const of = (outcome: string): number =>
    Number(new RegExp(`^controller_bridge_messages_total\\{outcome="${outcome}"\\} (\\d+)$`, "m").exec(text)?.[1] ?? 0);
  return { accepted: of("accepted"), rejected: of("rejected") };
}
