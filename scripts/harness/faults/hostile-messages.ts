import { setTimeout as sleep } from "node:timers/promises";
import { connectAsync } from "mqtt";
import { makeAgents, makeUser, type TestAgent } from "../accounts.ts";
import { until } from "../product.ts";
import type { Target } from "../target.ts";
import { startTelemetry } from "./loads/telemetry-load.ts";
import type { Outcome } from "./row.ts";

/**
 * Agents publish messages that cannot be stored, over and over, while others report: nothing of the others is lost, and the service counts
 * what it rejects.
 */

export interface HostileOptions {
  /** How often each message is sent. */
  rounds: number;
  pauseMs: number;
}

interface Hostile {
  channel: "data" | "result" | "status";
  payload: string | Buffer;
}

const nested = (levels: number): string => `${'{"a":'.repeat(levels - 1)}{}${"}".repeat(levels - 1)}`;
const data = (payload: string | Buffer): Hostile => ({ channel: "data", payload });

/** Rejected as a whole, whatever else is in it. */
const REJECTED: readonly Hostile[] = [
  data(nested(31)),
  data(nested(100_000)),
  data("{"),
  data(""),
  data("7"),
  data(Buffer.from([0x22, 0xff, 0x22])),
  data('{"ap_id":"another","payload":{"x":1}}'),
  data(JSON.stringify({ payload: { x: "x".repeat(1024 * 1024 - 100) } })),
  { channel: "result", payload: "null" },
  { channel: "result", payload: `{"job_number":"x","status":"done","data":${nested(40)}}` },
  { channel: "status", payload: "\u0001".repeat(180_000) },
];
/** Some of it may be stored. */
const ODD: readonly Hostile[] = [
  data('{"payload":{"text":"\\ud800"}}'),
  data('{"payload":{"text":"\\udc00","x":1}}'),
  data('{"payload":{"__proto__":{"x":1},"y":1e999}}'),
  { channel: "status", payload: "\u0000" },
];

const GOOD_AGENTS = 8;
const GOOD_PAUSE_MS = 20;
const COUNTED_WITHIN_MS = 60_000;

export async function hostileMessages(target: Target, { rounds, pauseMs }: HostileOptions): Promise<Outcome> {
  const prefix = `hostile-${Date.now()}`;
  const admin = await makeUser(target.dataDir, `${prefix}@example.com`, "none", ["admin"]);
  const before = await countedSoFar(target, admin.token);
  const agents = await makeAgents(target.dataDir, prefix, 2);
  const load = await startTelemetry(target, {
    channel: "MQTT",
    prefix: "among-hostile",
    agents: GOOD_AGENTS,
    pauseMs: GOOD_PAUSE_MS,
  });
  await Promise.all(agents.map((agent) => attack(target, agent, rounds, pauseMs)));
  await load.stop();
  const { lost, doubled, settledMs } = await load.settle();
  const expected = agents.length * rounds * REJECTED.length;
  const hostile = expected + agents.length * rounds * ODD.length;
  let rejected = 0;
  // Those that the service fails at are tried again for a few seconds, and must not disturb what comes next.
  await until(async () => {
    const now = await countedSoFar(target, admin.token);
    rejected = now.rejected - before.rejected;
    const isDone = now.accepted - before.accepted + rejected >= hostile + load.acknowledged;
    return isDone && rejected >= expected;
  }, COUNTED_WITHIN_MS).catch(() => {});
  return {
    acknowledged: load.acknowledged,
    lost,
    doubled,
    recoveredMs: 0,
    settledMs,
    broken: rejected >= expected ? [] : [`${rejected} messages are counted as rejected instead of ${expected}`],
    remarks: [`${hostile} hostile messages, ${rejected} rejected`],
  };
}

async function attack(target: Target, { apId, token }: TestAgent, rounds: number, pauseMs: number): Promise<void> {
  const client = await connectAsync(target.urls.mqtt ?? "", { username: apId, password: token });
  for (let round = 0; round < rounds; round++) {
    for (const { channel, payload } of [...REJECTED, ...ODD]) {
      await client.publishAsync(`agent/${apId}/${channel}`, payload, { qos: 1 });
      await sleep(pauseMs);
    }
  }
  await client.endAsync();
}

async function countedSoFar(target: Target, token: string): Promise<{ accepted: number; rejected: number }> {
  const response = await fetch(`${target.url}/metrics`, { headers: { Authorization: `Bearer ${token}` } });
  const text = await response.text();
  const of = (outcome: string): number =>
    Number(new RegExp(`^controller_bridge_messages_total\\{outcome="${outcome}"\\} (\\d+)$`, "m").exec(text)?.[1] ?? 0);
  return { accepted: of("accepted"), rejected: of("rejected") };
}
