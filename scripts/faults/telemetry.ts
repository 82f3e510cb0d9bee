import { setTimeout as sleep } from "node:timers/promises";
import { connect } from "mqtt";
import { makeAgents, type TrialAgent } from "../trial/accounts.ts";
import { clickhouseOf } from "../trial/clickhouse.ts";
import type { Product } from "../trial/product.ts";
import { killUnderLoad, TIMEOUT_MS } from "./kills.ts";

/** Telemetry while parts die: agents send and note what was acknowledged; in the end that, and that once, must be there. */

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
const METRIC = "n";
const PAUSE_MS = 20;
const COMPARE_EVERY_MS = 500;
/** What is acknowledged may be late: on a busy machine the bridge works through what the broker kept for it. It is lost when nothing comes any more. */
const SETTLED_AFTER_MS = 60_000;
const SETTLED_AT_LAST_MS = 600_000;

export async function killUnderTelemetry(
  product: Product,
  part: Part,
  kills: number,
  signal?: AbortSignal,
): Promise<Outcome> {
  const prefix = `fault-${part}-${Date.now()}`;
  const agents = await makeAgents(product.dataDir, prefix, 2 * AGENTS_PER_CHANNEL);
  const overHttp = agents.slice(0, AGENTS_PER_CHANNEL);
  const overMqtt = agents.slice(AGENTS_PER_CHANNEL);
  const stop = new AbortController();
  const acknowledged = new Acknowledged();
  const senders = [
    ...overHttp.map((agent) => sendOverHttp(product, agent, acknowledged, stop.signal)),
    ...overMqtt.map((agent) => sendOverMqtt(product, agent, acknowledged, stop.signal)),
  ];
  const accounts = part === "worker" ? async () => 0 : watchAccounts(product, agents[0] as TrialAgent, stop.signal);

  let recoveredMs: number[];
  try {
    const progress = () => acknowledged.count(overHttp);
    recoveredMs = await killUnderLoad(product, { part, kills, progress, signal });
  } finally {
    stop.abort();
  }
  await Promise.all(senders);
  return {
    acknowledgedHttp: acknowledged.count(overHttp),
    acknowledgedMqtt: acknowledged.count(overMqtt),
    ...(await compare(product, prefix, acknowledged)),
    accountFailures: await accounts(),
    recoveredMs,
  };
}

/** Which samples were acknowledged: by agent, the times, each of which is sent with one value only. */
class Acknowledged {
  readonly #times = new Map<string, number[]>();

  add(apId: string, tsMs: number): void {
    const times = this.#times.get(apId);
    if (times === undefined) this.#times.set(apId, [tsMs]);
    else times.push(tsMs);
  }

  count(agents: readonly TrialAgent[]): number {
    return agents.reduce((sum, { apId }) => sum + (this.#times.get(apId)?.length ?? 0), 0);
  }

  missing(stored: ReadonlySet<string>): number {
    return [...this.#times].reduce(
      (sum, [apId, times]) => sum + times.filter((tsMs) => !stored.has(`${apId} ${tsMs}`)).length,
      0,
    );
  }
}

/** Sends one sample after the other; each again and again until it is acknowledged, as a careful agent does. */
async function sendOverHttp(
  { url }: Product,
  { apId, token }: TrialAgent,
  acknowledged: Acknowledged,
  signal: AbortSignal,
): Promise<void> {
  while (!signal.aborted) {
    const tsMs = Date.now();
    const body = JSON.stringify({ ts: tsMs, payload: { [METRIC]: 1 } });
    for (let isDone = false; !isDone && !signal.aborted; await sleep(PAUSE_MS)) {
      const response = await fetch(`${url}/api/v1/agent_update/update`, {
        method: "POST",
        headers: { Authorization: `Bearer ${token}`, "Content-Type": "application/json" },
        body,
        signal: AbortSignal.timeout(TIMEOUT_MS),
      }).catch(() => undefined);
      await response?.arrayBuffer().catch(() => {});
      isDone = response?.status === 200;
    }
    if (!signal.aborted) acknowledged.add(apId, tsMs);
  }
}

/** The client itself sends again what the broker has not acknowledged, and connects again where that is gone. */
async function sendOverMqtt(
  { urls }: Product,
  { apId, token }: TrialAgent,
  acknowledged: Acknowledged,
  signal: AbortSignal,
): Promise<void> {
  const client = connect(urls.mqtt ?? "", { username: apId, password: token, reconnectPeriod: 100 });
  // The broker may be dead at this very moment; the client tries again.
  client.on("error", () => {});
  const sending: Promise<void>[] = [];
  for (let lastMs = 0; !signal.aborted; await sleep(PAUSE_MS)) {
    const tsMs = Math.max(Date.now(), lastMs + 1);
    lastMs = tsMs;
    const message = JSON.stringify({ ts: tsMs, payload: { [METRIC]: 1 } });
    const sent = client.publishAsync(`agent/${apId}/data`, message, { qos: 1 });
    sending.push(
      sent.then(
        () => acknowledged.add(apId, tsMs),
        () => {},
      ),
    );
  }
  await Promise.race([Promise.all(sending), sleep(TIMEOUT_MS)]);
  await client.endAsync(true);
}

/** Reads an account all the while; what it returns tells how often that failed. */
function watchAccounts(product: Product, { apId, token }: TrialAgent, signal: AbortSignal): () => Promise<number> {
  const watching = (async () => {
    let failures = 0;
    for (; !signal.aborted; await sleep(PAUSE_MS)) {
      const headers = { Authorization: `Bearer ${token}` };
      const response = await fetch(`${product.url}/api/v1/agents/${apId}`, { headers }).catch(() => undefined);
      await response?.arrayBuffer();
      if (response?.status !== 200) failures++;
    }
    return failures;
  })();
  return () => watching;
}

async function compare(
  product: Product,
  prefix: string,
  acknowledged: Acknowledged,
): Promise<{ lost: number; doubled: number; settledMs: number }> {
  const clickhouse = clickhouseOf(product);
  const ask = async <Row>(query: string): Promise<Row[]> => {
    const answer = await clickhouse.query({ query, query_params: { prefix, metric: METRIC }, format: "JSONEachRow" });
    return await answer.json<Row>();
  };
  const readPoints = () =>
    ask<{ ap_id: string; at: string; n: string }>(
      `SELECT ap_id, toUnixTimestamp64Milli(ts) AS at, count() AS n FROM points_v1
       WHERE startsWith(ap_id, {prefix:String}) AND metric = {metric:String} GROUP BY ap_id, at`,
    );
  try {
    const startedMs = performance.now();
    let points = await readPoints();
    let lost = acknowledged.missing(keysOf(points));
    for (let arrivedMs = startedMs, nowMs = startedMs; lost > 0; nowMs = performance.now()) {
      if (nowMs - arrivedMs > SETTLED_AFTER_MS || nowMs - startedMs > SETTLED_AT_LAST_MS) break;
      await sleep(COMPARE_EVERY_MS);
      const before = points.length;
      points = await readPoints();
      if (points.length > before) arrivedMs = performance.now();
      lost = acknowledged.missing(keysOf(points));
    }
    const settledMs = performance.now() - startedMs;
    const [sums] = await ask<{ n: string }>(
      "SELECT sum(n) AS n FROM minutes_v1 WHERE startsWith(ap_id, {prefix:String}) AND metric = {metric:String}",
    );
    const copies = points.reduce((sum, { n }) => sum + Number(n) - 1, 0);
    return { lost, doubled: copies + Math.abs(Number(sums?.n ?? 0) - points.length), settledMs };
  } finally {
    await clickhouse.close();
  }
}

const keysOf = (points: readonly { ap_id: string; at: string }[]): ReadonlySet<string> =>
  new Set(points.map(({ ap_id, at }) => `${ap_id} ${at}`));
