import { setTimeout as sleep } from "node:timers/promises";
import { connect } from "mqtt";
import { makeAgents, type TestAgent } from "../../accounts.ts";
import { clickhouseOf } from "../../clickhouse.ts";
import type { Target } from "../../target.ts";
import type { Load } from "./load.ts";

/** Agents send samples and note which were acknowledged; in the end those, and each once, must be there. */

export type Channel = "HTTP" | "MQTT";

export interface TelemetryOptions {
  channel: Channel;
  /** Of the agents' names. */
  prefix: string;
  agents: number;
  pauseMs: number;
}

const METRIC = "n";
const GIVEN_UP_MS = 60_000;
const RECONNECT_MS = 100;
/** A connection that has gone without a word is noticed by then. */
const KEEP_ALIVE_S = 5;
const COMPARE_EVERY_MS = 500;
/** A sum comes a moment after its points, and on a busy machine a moment is long. */
const SUMMED_AFTER_MS = 10_000;
/** What is acknowledged may be late: on a busy machine the bridge works through what the broker kept for it. It is lost when nothing comes any more. */
const SETTLED_AFTER_MS = 60_000;
const SETTLED_AT_LAST_MS = 600_000;

export async function startTelemetry(target: Target, options: TelemetryOptions): Promise<Load> {
  const { channel, agents, pauseMs } = options;
  const prefix = `${options.prefix}-${channel.toLowerCase()}-${Date.now()}`;
  const stop = new AbortController();
  const acknowledged = new Acknowledged();
  const send = channel === "HTTP" ? sendOverHttp : sendOverMqtt;
  const made = await makeAgents(target.dataDir, prefix, agents);
  const senders = made.map((agent) => send({ target, agent, acknowledged, pauseMs, signal: stop.signal }));
  return {
    name: `telemetry over ${channel}`,
    get acknowledged() {
      return acknowledged.count;
    },
    async stop() {
      stop.abort();
      await Promise.all(senders);
    },
    settle: async () => ({ ...(await compare(target, prefix, acknowledged)), faults: {} }),
  };
}

/** Which samples were acknowledged: by agent, the times, each of which is sent with one value only. */
class Acknowledged {
  readonly #samples = new Set<string>();

  add(apId: string, tsMs: number): void {
    this.#samples.add(`${apId} ${tsMs}`);
  }

  get count(): number {
    return this.#samples.size;
  }

  missing(stored: ReadonlySet<string>): number {
    return [...this.#samples].filter((sample) => !stored.has(sample)).length;
  }
}

interface Sending {
  target: Target;
  agent: TestAgent;
  acknowledged: Acknowledged;
  pauseMs: number;
  signal: AbortSignal;
}

/** Sends one sample after the other; each again and again until it is acknowledged, as a careful agent does. */
async function sendOverHttp({ target, agent, acknowledged, pauseMs, signal }: Sending): Promise<void> {
  while (!signal.aborted) {
    const tsMs = Date.now();
    const question = { token: agent.token, body: { ts: tsMs, payload: { [METRIC]: 1 } } };
    for (let isDone = false; !isDone && !signal.aborted; await sleep(pauseMs)) {
      const answer = await target.ask("/api/v1/agent_update/update", question);
      isDone = answer?.status === 200;
      if (isDone) acknowledged.add(agent.apId, tsMs);
    }
  }
}

/** The client itself sends again what the broker has not acknowledged, and connects again where that is gone. */
async function sendOverMqtt({ target, agent, acknowledged, pauseMs, signal }: Sending): Promise<void> {
  const { apId, token } = agent;
  const client = connect(target.urls.mqtt ?? "", {
    ...{ username: apId, password: token, reconnectPeriod: RECONNECT_MS, keepalive: KEEP_ALIVE_S },
    // A broker that has just been started refuses everyone until it has the service's keys.
    reconnectOnConnackError: true,
  });
  // The broker may be dead at this very moment; the client tries again.
  client.on("error", () => {});
  const sending: Promise<void>[] = [];
  for (let lastMs = 0; !signal.aborted; await sleep(pauseMs)) {
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
  await Promise.race([Promise.all(sending), sleep(GIVEN_UP_MS, undefined, { ref: false })]);
  await client.endAsync(true);
}

async function compare(
  target: Target,
  prefix: string,
  acknowledged: Acknowledged,
): Promise<{ lost: number; doubled: number; settledMs: number }> {
  const clickhouse = clickhouseOf(target);
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
    const countDoubled = async () => {
      points = await readPoints();
      const [sums] = await ask<{ n: string }>(
        "SELECT sum(n) AS n FROM minutes_v1 WHERE startsWith(ap_id, {prefix:String}) AND metric = {metric:String}",
      );
      const copies = points.reduce((sum, { n }) => sum + Number(n) - 1, 0);
      return copies + Math.abs(Number(sums?.n ?? 0) - points.length);
    };
    let doubled = await countDoubled();
    for (const endMs = performance.now() + SUMMED_AFTER_MS; doubled > 0 && performance.now() < endMs; ) {
      await sleep(COMPARE_EVERY_MS);
      doubled = await countDoubled();
    }
    return { lost, doubled, settledMs };
  } finally {
    await clickhouse.close();
  }
}

const keysOf = (points: readonly { ap_id: string; at: string }[]): ReadonlySet<string> =>
  new Set(points.map(({ ap_id, at }) => `${ap_id} ${at}`));
