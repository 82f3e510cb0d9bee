import { setTimeout as sleep } from "node:timers/promises";
import { connectToNodes } from "../../src/programs/shared/broker-nodes.ts";
import { makeAgents, type TestAgent } from "./accounts.ts";
import { selectRows, withClickHouse } from "./clickhouse.ts";
import type { Target } from "./client.ts";
import { createWorkload, type Workload } from "./workload.ts";

/** Checks telemetry: every acknowledged sample is stored, each sample exactly once, and the rollups count the same samples. */

export const UPDATE_PATH = "/api/v1/agent_update/update";
export const METRIC = "n";
const POLL_MS = 500;
/** On a busy machine the bridge needs time for its backlog. A sample is lost if nothing arrives for this time. */
const SETTLED_AFTER_MS = 60_000;
const MAX_SETTLING_MS = 600_000;
/** ClickHouse updates the rollups shortly after the points. */
const ROLLED_UP_WITHIN_MS = 10_000;

export const sampleAt = (tsMs: number) => ({ ts: tsMs, payload: { [METRIC]: 1 } });

export class TelemetryOracle {
  readonly #store: Pick<Target, "urls">;
  readonly #prefix: string;
  readonly #metric: string;
  readonly #acknowledged = new Set<string>();

  /** Looks at the agents whose names begin with the prefix. */
  constructor(store: Pick<Target, "urls">, prefix: string, metric = METRIC) {
    this.#store = store;
    this.#prefix = prefix;
    this.#metric = metric;
  }

  record(apId: string, tsMs: number): void {
    this.#acknowledged.add(`${apId} ${tsMs}`);
  }

  get acknowledged(): number {
    return this.#acknowledged.size;
  }

  /** Waits for acknowledged samples that are late, then compares. `unexpected` counts stored samples that were not acknowledged. */
  async compare(): Promise<{ lost: number; duplicates: number; unexpected: number; settledMs: number }> {
    const params = { prefix: this.#prefix, metric: this.#metric };
    const where = "WHERE startsWith(ap_id, {prefix:String}) AND metric = {metric:String}";
    return await withClickHouse(this.#store, async (clickhouse) => {
      const readPoints = async (): Promise<Map<string, number>> => {
        const query = `SELECT ap_id, toUnixTimestamp64Milli(ts) AS at, count() AS n FROM points_v1 ${where} GROUP BY ap_id, at`;
        const rows = await selectRows<{ ap_id: string; at: string; n: string }>(clickhouse, query, params);
        return new Map(rows.map(({ ap_id, at, n }) => [`${ap_id} ${at}`, Number(n)]));
      };
      const countDuplicates = async (): Promise<number> => {
        const query = `SELECT sum(n) AS n FROM minutes_v1 ${where}`;
        const [rollups] = await selectRows<{ n: string }>(clickhouse, query, params);
        points = await readPoints();
        const copies = [...points.values()].reduce((sum, n) => sum + n - 1, 0);
        return copies + Math.abs(Number(rollups?.n ?? 0) - points.size);
      };
      const startedMs = performance.now();
      let points = await readPoints();
      const countLost = () => [...this.#acknowledged].filter((sample) => !points.has(sample)).length;
      for (let arrivedMs = startedMs, nowMs = startedMs; countLost() > 0; nowMs = performance.now()) {
        if (nowMs - arrivedMs > SETTLED_AFTER_MS || nowMs - startedMs > MAX_SETTLING_MS) break;
        await sleep(POLL_MS);
        const before = points.size;
        points = await readPoints();
        if (points.size > before) arrivedMs = performance.now();
      }
      const settledMs = performance.now() - startedMs;
      let duplicates = await countDuplicates();
      for (const endMs = performance.now() + ROLLED_UP_WITHIN_MS; duplicates > 0 && performance.now() < endMs; ) {
        await sleep(POLL_MS);
        duplicates = await countDuplicates();
      }
      const unexpected = [...points.keys()].filter((sample) => !this.#acknowledged.has(sample)).length;
      return { lost: countLost(), duplicates, unexpected, settledMs };
    });
  }
}

export type Channel = "HTTP" | "MQTT";

export interface TelemetryOptions {
  channel: Channel;
  /** The beginning of the agents' names. */
  prefix: string;
  agents: number;
  pauseMs: number;
  /** Whether a report without the response 200 violates a guarantee. */
  isEachAccepted?: boolean;
}

/** Creates agents in the database and lets them send samples. */
export async function startTelemetry(target: Target, options: TelemetryOptions): Promise<Workload> {
  const prefix = `${options.prefix}-${options.channel.toLowerCase()}-${Date.now()}`;
  const agents = await makeAgents(target.dataDir, prefix, options.agents);
  return sendTelemetry(target, agents, { ...options, prefix });
}

/** Lets agents send samples until the workload is stopped. */
export function sendTelemetry(
  target: Pick<Target, "client" | "urls">,
  agents: readonly TestAgent[],
  { channel, prefix, pauseMs, isEachAccepted = false }: Omit<TelemetryOptions, "agents">,
): Workload {
  const stop = new AbortController();
  const oracle = new TelemetryOracle(target, prefix);
  const send = channel === "HTTP" ? sendOverHttp : sendOverMqtt;
  let rejected = 0;
  const onRejected = () => rejected++;
  const senders = agents.map((agent) => send({ target, agent, oracle, pauseMs, signal: stop.signal, onRejected }));
  return createWorkload(`telemetry over ${channel}`, stop, senders, {
    acknowledged: () => oracle.acknowledged,
    settle: async () => ({ ...(await oracle.compare()), violations: isEachAccepted ? { rejected } : {} }),
  });
}

interface Sender {
  target: Pick<Target, "client" | "urls">;
  agent: TestAgent;
  oracle: TelemetryOracle;
  pauseMs: number;
  signal: AbortSignal;
  onRejected(): void;
}

/** Sends one sample after the other and retries each until it is acknowledged. */
async function sendOverHttp({ target, agent, oracle, pauseMs, signal, onRejected }: Sender): Promise<void> {
  for (let tsMs = 0; !signal.aborted; ) {
    tsMs = Math.max(tsMs + 1, Date.now());
    for (let isDone = false; !isDone && !signal.aborted; await sleep(pauseMs)) {
      const response = await target.client.attempt(UPDATE_PATH, { token: agent.token, body: sampleAt(tsMs) });
      isDone = response?.status === 200;
      if (isDone) oracle.record(agent.apId, tsMs);
      else onRejected();
    }
  }
}

const RECONNECT_MS = 100;
/** Detects a connection that died without a close. */
const KEEP_ALIVE_S = 5;
const GIVE_UP_MS = 60_000;

/** Publishes samples. The client reconnects, and resends what the broker has not acknowledged. */
async function sendOverMqtt({ target, agent, oracle, pauseMs, signal }: Sender): Promise<void> {
  const { apId, token } = agent;
  const client = connectToNodes(target.urls.mqtt ?? "", {
    // RabbitMQ requires this id.
    clientId: `agent/${apId}`,
    username: apId,
    password: token,
    reconnectPeriod: RECONNECT_MS,
    keepalive: KEEP_ALIVE_S,
    // A broker that has just started rejects all logins until it has the service's keys.
    reconnectOnConnackError: true,
  });
  // The broker may be dead now; the client reconnects.
  client.on("error", () => {});
  const sending: Promise<void>[] = [];
  for (let tsMs = 0; !signal.aborted; await sleep(pauseMs)) {
    tsMs = Math.max(tsMs + 1, Date.now());
    const sentMs = tsMs;
    const sent = client.publishAsync(`agent/${apId}/data`, JSON.stringify(sampleAt(sentMs)), { qos: 1 });
    sending.push(sent.then(() => oracle.record(apId, sentMs)).catch(() => {}));
  }
  await Promise.race([Promise.all(sending), sleep(GIVE_UP_MS, undefined, { ref: false })]);
  await client.endAsync(true);
}
