import { setTimeout as sleep } from "node:timers/promises";
import { makeAgents, type TestAgent } from "../accounts.ts";
import type { Product } from "../product.ts";
import { Target } from "../target.ts";
import { killUnderLoad } from "./kills.ts";
import { type Channel, startTelemetry } from "./loads/telemetry-load.ts";

/** Telemetry while parts die: what was acknowledged, and that once, must be there. */

export const PARTS = ["clickhouse", "broker", "bridge", "worker"] as const;
export type Part = (typeof PARTS)[number];

export interface Outcome {
  acknowledgedHttp: number;
  acknowledgedMqtt: number;
  /** Acknowledged, and never there. */
  lost: number;
  /** How long it took until everything was there, or until nothing more came. */
  settledMs: number;
  /** Counted more than once: as points, or in the sums over minutes. */
  doubled: number;
  /** How often an account could not be read while only telemetry was hit. */
  accountFailures: number;
  /** How long each kill took to be over: the part is back, and samples get through again. */
  recoveredMs: number[];
}

const AGENTS_PER_CHANNEL = 8;
const PAUSE_MS = 20;

export async function killUnderTelemetry(product: Product, part: Part, kills: number): Promise<Outcome> {
  const target = new Target(product);
  const start = (channel: Channel) =>
    startTelemetry(target, { channel, prefix: `fault-${part}`, agents: AGENTS_PER_CHANNEL, pauseMs: PAUSE_MS });
  const [http, mqtt] = await Promise.all([start("HTTP"), start("MQTT")]);
  const stop = new AbortController();
  const accounts = part === "worker" ? Promise.resolve(0) : watchAccounts(product, stop.signal);

  let recoveredMs: number[];
  try {
    recoveredMs = await killUnderLoad(product, { part, kills, progress: () => http.acknowledged });
  } finally {
    stop.abort();
    await Promise.all([http.stop(), mqtt.stop()]);
  }
  const [overHttp, overMqtt] = await Promise.all([http.settle(), mqtt.settle()]);
  return {
    acknowledgedHttp: http.acknowledged,
    acknowledgedMqtt: mqtt.acknowledged,
    lost: overHttp.lost + overMqtt.lost,
    doubled: overHttp.doubled + overMqtt.doubled,
    settledMs: Math.max(overHttp.settledMs, overMqtt.settledMs),
    accountFailures: await accounts,
    recoveredMs,
  };
}

/** Reads an account all the while; how often that failed. */
async function watchAccounts({ url, dataDir }: Product, signal: AbortSignal): Promise<number> {
  const [{ apId, token }] = (await makeAgents(dataDir, `fault-watch-${Date.now()}`, 1)) as [TestAgent];
  let failures = 0;
  for (; !signal.aborted; await sleep(PAUSE_MS)) {
    const headers = { Authorization: `Bearer ${token}` };
    const response = await fetch(`${url}/api/v1/agents/${apId}`, { headers }).catch(() => undefined);
    await response?.arrayBuffer();
    if (response?.status !== 200) failures++;
  }
  return failures;
}
