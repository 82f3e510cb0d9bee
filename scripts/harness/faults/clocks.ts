import { once } from "node:events";
import { setTimeout as sleep } from "node:timers/promises";
import { connectAsync } from "mqtt";
import { makeAgents, makeUser, type TestAgent, tokenEnding } from "../accounts.ts";
import { clickhouseOf } from "../clickhouse.ts";
import { openSocket, streamPath } from "../job-socket.ts";
import type { Target } from "../target.ts";
import type { Outcome } from "./row.ts";
import type { World } from "./world.ts";

/**
 * Agents whose clocks are behind or ahead: what is accepted is stored at exactly the time that it bears, what lies too far ahead is
 * refused by name and holds up nothing else. Tokens near their end are good for as long as the skew allows, and no longer.
 */

const MINUTE_MS = 60_000;
const ACCEPTED_MS = [-10 * 24 * 60 * MINUTE_MS, -60 * MINUTE_MS, -MINUTE_MS, 0, 4.8 * MINUTE_MS];
const REFUSED_MS = [5.5 * MINUTE_MS, 24 * 60 * MINUTE_MS];
const OFFSETS_MS = [...ACCEPTED_MS, ...REFUSED_MS];
const SAMPLES = 20;
const METRIC = "n";
const ARRIVED_WITHIN_MS = 60_000;
const CLOSED_WITHIN_MS = 90_000;
const TOKEN_EXPIRED = 4401;

export async function clocks(world: World): Promise<Outcome> {
  const target = world.target();
  const prefix = `clock-${Date.now()}`;
  const agents = await makeAgents(target.dataDir, prefix, 2 * OFFSETS_MS.length);
  const broken: string[] = [];
  const expected = new Set<string>();
  await Promise.all(
    agents.map(async (agent, i) => {
      const offsetMs = OFFSETS_MS[i % OFFSETS_MS.length] ?? 0;
      const isAccepted = ACCEPTED_MS.includes(offsetMs);
      const baseMs = Date.now() + offsetMs;
      const times = Array.from({ length: SAMPLES }, (_, n) => baseMs - n * 137);
      if (isAccepted) for (const tsMs of times) expected.add(`${agent.apId} ${tsMs}`);
      const faults = await (i < OFFSETS_MS.length ? overHttp : overMqtt)(target, agent, times, isAccepted);
      broken.push(...faults);
    }),
  );
  const startedMs = performance.now();
  const points = await untilThere(target, prefix, expected);
  const settledMs = performance.now() - startedMs;
  const elsewhere = points.filter((point) => !expected.has(point)).length;
  if (elsewhere > 0) broken.push(`${elsewhere} samples are stored at times that were not theirs, or were refused`);
  broken.push(...(await tokensNearTheirEnd(target)));
  const there = new Set(points);
  return {
    acknowledged: expected.size,
    lost: [...expected].filter((point) => !there.has(point)).length,
    doubled: points.length - there.size,
    recoveredMs: 0,
    settledMs,
    broken,
    remarks: [`clocks off by ${OFFSETS_MS.map((ms) => `${ms / MINUTE_MS} min`).join(", ")}`],
  };
}

async function overHttp(
  target: Target,
  { apId, token }: TestAgent,
  times: number[],
  isAccepted: boolean,
): Promise<string[]> {
  const samples = times.map((ts) => ({ ts, payload: { [METRIC]: 1 } }));
  const answer = await target.ask("/api/v1/agent_update/update", { token, body: { samples } });
  if (isAccepted) return answer?.status === 200 ? [] : [`${apId}: ${answer?.status} for a time that is allowed`];
  const { detail } = (answer?.body ?? {}) as { detail?: { loc: unknown[] }[] };
  const isNamed = answer?.status === 422 && detail?.every(({ loc }) => loc.at(-1) === "ts");
  return isNamed ? [] : [`${apId}: ${answer?.status}, and the time is not named`];
}

/** The broker takes everything; what is refused, the bridge says in its log. */
async function overMqtt(target: Target, { apId, token }: TestAgent, times: number[]): Promise<string[]> {
  const client = await connectAsync(target.urls.mqtt ?? "", { username: apId, password: token });
  await Promise.all(
    times.map((ts) =>
      client.publishAsync(`agent/${apId}/data`, JSON.stringify({ ts, payload: { [METRIC]: 1 } }), { qos: 1 }),
    ),
  );
  await client.endAsync();
  return [];
}

/** Every point that is there, once for each time that it is; waits for those that are to come. */
async function untilThere(target: Target, prefix: string, expected: ReadonlySet<string>): Promise<string[]> {
  const clickhouse = clickhouseOf(target);
  try {
    for (const endMs = performance.now() + ARRIVED_WITHIN_MS; ; await sleep(250)) {
      const answer = await clickhouse.query({
        query: `SELECT ap_id, toUnixTimestamp64Milli(ts) AS at FROM points_v1
                WHERE startsWith(ap_id, {prefix:String}) AND metric = {metric:String}`,
        query_params: { prefix, metric: METRIC },
        format: "JSONEachRow",
      });
      const rows = await answer.json<{ ap_id: string; at: string }>();
      const points = rows.map(({ ap_id, at }) => `${ap_id} ${at}`);
      if (new Set(points).size >= expected.size || performance.now() > endMs) return points;
    }
  } finally {
    await clickhouse.close();
  }
}

async function tokensNearTheirEnd(target: Target): Promise<string[]> {
  const user = await makeUser(target.dataDir, `clock-${Date.now()}@example.com`);
  const endingIn = (seconds: number) => tokenEnding(target.dataDir, user, seconds);
  const me = async (seconds: number) =>
    (await target.ask("/api/v1/users/me", { token: await endingIn(seconds) }))?.status;
  const statuses = [await me(5), await me(-30), await me(-90)];
  const socket = await openSocket({
    url: target.url,
    path: streamPath(crypto.randomUUID()),
    token: await endingIn(3),
  });
  const [code] = (await once(socket, "close", { signal: AbortSignal.timeout(CLOSED_WITHIN_MS) }).catch(() => [
    "nothing",
  ])) as [unknown];
  return [
    ...(String(statuses) === "200,200,401"
      ? []
      : [`tokens that end in 5 s, ended 30 s ago and 90 s ago were answered with ${statuses}`]),
    ...(code === TOKEN_EXPIRED ? [] : [`a socket whose token had ended was closed with ${code}`]),
  ];
}
