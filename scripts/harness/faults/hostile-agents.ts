import { setTimeout as sleep } from "node:timers/promises";
import { makeAgents, type TestAgent } from "../accounts.ts";
import { clickhouseOf } from "../clickhouse.ts";
import type { Target } from "../target.ts";
import type { Outcome } from "./row.ts";
import type { World } from "./world.ts";

/**
 * Agents that send what no agent should, beside others that report steadily: the others are answered with 200, within the time that
 * the documentation promises, and everything that was acknowledged is stored once.
 */

const STEADY = 20;
const HOSTILE = 5;
const LASTS_MS = 10_000;
const PAUSE_MS = 200;
const METRIC = "steady";
const DAY_MS = 86_400_000;
/** Two seconds are promised; a third is the machine's, which runs everything at once. */
const MAX_WAIT_MS = 3_000;
const ARRIVED_WITHIN_MS = 30_000;

/** What a hostile agent sends, and which fields the service must reject by name. */
interface Hostile {
  body(n: number): object;
  isRejected(field: string): boolean;
}

export const loneSurrogates = (world: World, signal: AbortSignal): Promise<Outcome> =>
  beside(world, signal, {
    body: (n) => ({ payload: { [`name${n}\ud800`]: 1, low: "\udc00", high: "x\ud83d", good: n } }),
    isRejected: (field) => field !== "good",
  });

export const backlogs = (world: World, signal: AbortSignal): Promise<Outcome> =>
  beside(world, signal, {
    // A thousand samples, one for each of as many days: most of them are older than telemetry is kept.
    body: (n) => {
      const nowMs = Date.now();
      const samples = Array.from({ length: 1_000 }, (_, day) => ({
        ts: nowMs - day * DAY_MS - n,
        payload: { a: n, t: "x" },
      }));
      return { samples };
    },
    isRejected: (field) => /^samples\.\d+\.ts$/.test(field),
  });

async function beside(world: World, signal: AbortSignal, hostile: Hostile): Promise<Outcome> {
  const target = world.target();
  const prefix = `hostile-${Date.now()}`;
  const agents = await makeAgents(target.dataDir, prefix, STEADY + HOSTILE);
  const acknowledged = new Set<string>();
  const broken = new Set<string>();
  const endMs = performance.now() + LASTS_MS;
  const isOn = () => performance.now() < endMs && !signal.aborted;
  let slowestMs = 0;
  let hostileCalls = 0;

  const report = async ({ apId, token }: TestAgent): Promise<void> => {
    for (let tsMs = 0; isOn(); await sleep(PAUSE_MS)) {
      tsMs = Math.max(tsMs + 1, Date.now());
      const startedMs = performance.now();
      const answer = await target.ask("/api/v1/agent_update/update", {
        token,
        body: { ts: tsMs, payload: { [METRIC]: 1 } },
      });
      slowestMs = Math.max(slowestMs, performance.now() - startedMs);
      if (answer?.status === 200) acknowledged.add(`${apId} ${tsMs}`);
      else broken.add(`a steady agent is answered with ${answer?.status ?? "nothing"}`);
    }
  };
  const offend = async ({ token }: TestAgent): Promise<void> => {
    for (let n = 0; isOn(); n++) {
      const answer = await target.ask("/api/v1/agent_update/update", { token, body: hostile.body(n) });
      hostileCalls++;
      const { rejected = [] } = (answer?.body ?? {}) as { rejected?: { field: string }[] };
      if (answer?.status !== 200) broken.add(`a hostile agent is answered with ${answer?.status ?? "nothing"}`);
      else if (rejected.length === 0 || !rejected.every(({ field }) => hostile.isRejected(field)))
        broken.add("a hostile agent is not told which fields are rejected");
    }
  };
  await Promise.all(agents.map((agent, i) => (i < STEADY ? report(agent) : offend(agent))));

  const startedMs = performance.now();
  const stored = await untilThere(target, prefix, acknowledged);
  if (slowestMs > MAX_WAIT_MS) broken.add(`a steady agent waited for ${Math.round(slowestMs)} ms`);
  return {
    acknowledged: acknowledged.size,
    lost: [...acknowledged].filter((point) => !stored.has(point)).length,
    doubled: [...stored.values()].filter((n) => n > 1).length,
    recoveredMs: 0,
    settledMs: performance.now() - startedMs,
    broken: [...broken],
    remarks: [`${hostileCalls} hostile calls; the longest wait of a steady agent was ${Math.round(slowestMs)} ms`],
  };
}

/** How often each point of the steady agents is stored; waits for those that are to come. */
async function untilThere(target: Target, prefix: string, expected: ReadonlySet<string>): Promise<Map<string, number>> {
  const clickhouse = clickhouseOf(target);
  try {
    for (const endMs = performance.now() + ARRIVED_WITHIN_MS; ; await sleep(250)) {
      const answer = await clickhouse.query({
        query: `SELECT ap_id, toUnixTimestamp64Milli(ts) AS at, count() AS n FROM points_v1
                WHERE startsWith(ap_id, {prefix:String}) AND metric = {metric:String} GROUP BY ap_id, at`,
        query_params: { prefix, metric: METRIC },
        format: "JSONEachRow",
      });
      const rows = await answer.json<{ ap_id: string; at: string; n: string }>();
      const stored = new Map(rows.map(({ ap_id, at, n }) => [`${ap_id} ${at}`, Number(n)]));
      if (stored.size >= expected.size || performance.now() > endMs) return stored;
    }
  } finally {
    await clickhouse.close();
  }
}
