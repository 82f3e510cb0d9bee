import { createServer } from "node:http";
import { json } from "node:stream/consumers";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { connectAsync } from "mqtt";
import { brokerPart } from "../stack/broker.ts";
import { say } from "../stack/console.ts";
import { anyFreePort } from "../stack/ports.ts";
import { makeAgents, type TrialAgent } from "../trial/accounts.ts";
import { clickhouseOf } from "../trial/clickhouse.ts";
import { type LoadOptions, type LoadResult, load } from "../trial/load.ts";
import type { BenchContext } from "./context.ts";
import { cpuOf } from "./usage.ts";

/** From the access point to the chart: what goes in, what comes out, and what either costs as the data grows. */

const LIVE_METRICS = ["a", "b", "c", "d"];
const FIELDS = Array.from({ length: 10 }, (_, i) => `field_${i}`);
const LIVE_S = 300;
const HOUR_S = 3_600;
const DAY_S = 86_400;
/** Rows in one INSERT … SELECT: enough to be quick, few enough for a small machine. */
const SEED_ROWS = 500_000;

export async function benchTelemetry(context: BenchContext): Promise<void> {
  const { product, isQuick } = context;
  const sizes = isQuick ? [10, 100] : [10, 1_000, 10_000];
  const days = isQuick ? 2 : 30;
  const most = sizes.at(-1) ?? 0;
  const clickhouse = clickhouseOf(product);
  const measure = (options: Omit<LoadOptions, "url" | "seconds">): Promise<LoadResult> =>
    load({ url: product.url, seconds: context.seconds, ...options });

  const bare = async (): Promise<number> => {
    const { perSecond, p50Ms, p99Ms } = await load({
      url: context.bareUrl,
      seconds: context.seconds,
      connections: 32,
      next: () => ({ method: "GET", path: "/" }),
    });
    context.report.add({ what: "bare Hono route", value: perSecond, unit: "/s", details: { p50Ms, p99Ms } });
    return perSecond;
  };

  say(`Making ${most} agents.`);
  const agents = await makeAgents(product.dataDir, "bench", most);
  const bareRate = await bare();
  await ingestOverHttp(context, agents.slice(0, REPORTING), bareRate);
  await ingestOverMqtt(context, agents.slice(0, 50), clickhouse);

  say("Filling the store.");
  const seed = async (apIds: number, fromAgent: number, spanS: number): Promise<void> => {
    const rows = apIds * spanS;
    for (let at = 0; at < rows; at += SEED_ROWS) {
      await clickhouse.command({
        query: `INSERT INTO samples_v1
          SELECT concat('bench-', toString(${fromAgent} + number % ${apIds})), now64(3) - intDiv(number, ${apIds}),
            map(${LIVE_METRICS.map((metric, i) => `'${metric}', round(100 * sin(number / ${1000 + i}), 2)`).join(", ")}), map()
          FROM numbers(${at}, ${Math.min(SEED_ROWS, rows - at)})`,
        clickhouse_settings: { max_partitions_per_insert_block: "0" },
      });
    }
  };
  await seed(most, 0, LIVE_S);
  // The last of them has a long past besides.
  const old = agents.at(-1) as TrialAgent;
  await seed(1, most - 1, days * DAY_S);
  await atRest(clickhouse);

  const floor = await bare();
  const live = (count: number, since = "") =>
    measure({
      connections: 32,
      next: (connection, i) => {
        const agent = agents[(connection * 7 + i * 32) % count] as TrialAgent;
        return { method: "GET", token: agent.token, path: chart(agent.apId, "5m", since) };
      },
    });
  let first: number | undefined;
  for (const count of sizes) {
    await Promise.all(
      Array.from({ length: 16 }, async (_, lane) => {
        for (let i = lane; i < watchedOf(count); i += 16) {
          const { apId, token } = agents[i] as TrialAgent;
          await fetch(`${product.url}${chart(apId, "5m")}`, { headers: { Authorization: `Bearer ${token}` } });
        }
      }),
    );
    const cpu = cpuOf(context.product, ["worker"]);
    const result = await live(watchedOf(count));
    const meanMs = (1000 * 32) / result.perSecond;
    first ??= meanMs;
    context.report.add({
      what: `live query: 5 minutes of 4 metrics at 1/s, ${count} agents, ${watchedOf(count)} of them watched`,
      value: result.perSecond,
      unit: "/s",
      ratio: { of: "bare Hono", value: result.perSecond / floor, wanted: "at least 0.15" },
      details: { ...latencies(result), ...cpu.per(result.count), "time next to the fewest agents": meanMs / first },
    });
  }
  const news = await live(sizes[1] ?? 10, `&since=${Date.now() - 2_000}`);
  context.report.add({
    what: "live query with since: what came in the last 2 s",
    value: news.perSecond,
    unit: "/s",
    ratio: { of: "bare Hono", value: news.perSecond / floor },
    details: latencies(news),
  });

  const metrics = await measure({
    connections: 8,
    next: () => ({ method: "GET", token: old.token, path: `/api/v1/metrics/agent_metrics?agent=${old.apId}` }),
  });
  context.report.add({
    what: "discovery: which metrics an agent has",
    value: metrics.perSecond,
    unit: "/s",
    details: latencies(metrics),
  });

  let hourMs: number | undefined;
  for (const [name, window] of [
    ["an hour", `${HOUR_S}s`],
    ["a day", "1d"],
    [`${days} days`, `${days}d`],
  ] as const) {
    const path = chart(old.apId, window);
    const result = await measure({ connections: 1, next: () => ({ method: "GET", token: old.token, path }) });
    const meanMs = 1000 / result.perSecond;
    hourMs ??= meanMs;
    context.report.add({
      what: `chart of 4 metrics over ${name}, from ClickHouse`,
      value: meanMs,
      unit: "ms",
      ratio: { of: "an hour", value: meanMs / hourMs, wanted: "30 days: under 5" },
      details: latencies(result),
    });
  }

  for (const table of ["points_v1", "minutes_v1"]) {
    const answer = await clickhouse.query({
      query: `SELECT sum(rows) AS count, sum(bytes_on_disk) AS bytes FROM system.parts
              WHERE active AND database = currentDatabase() AND table = {table:String}`,
      query_params: { table },
      format: "JSONEachRow",
    });
    const [size] = await answer.json<{ count: string; bytes: string }>();
    context.report.add({
      what: `bytes on disk per row of ${table}`,
      value: Number(size?.bytes) / Number(size?.count),
      unit: "B",
      details: { rows: Number(size?.count) },
    });
  }
  await clickhouse.close();
}

const MAX_REST_MS = 180_000;

/** What was put in is still being merged, on the same cores: not what is to be measured. */
async function atRest(clickhouse: ReturnType<typeof clickhouseOf>): Promise<void> {
  for (const endMs = Date.now() + MAX_REST_MS; Date.now() < endMs; await sleep(1_000)) {
    const answer = await clickhouse.query({
      query: "SELECT count() AS count FROM system.merges",
      format: "JSONEachRow",
    });
    if (Number((await answer.json<{ count: string }>())[0]?.count) === 0) return;
  }
}

/** Nobody looks at ten thousand charts at once. */
const watchedOf = (agents: number): number => Math.min(agents, 1_000);

const chart = (apId: string, window: string, since = ""): string =>
  `/api/v1/metrics/agent_multi_metric_data?agent=${apId}&metrics=${LIVE_METRICS.join()}&window=${window}${since}`;

const sample = (value: number): Record<string, number> =>
  Object.fromEntries(FIELDS.map((name, i) => [name, value + i]));

const latencies = ({ p50Ms, p99Ms, failures }: LoadResult) => ({
  "p50 ms": p50Ms,
  "p99 ms": p99Ms,
  ...(Object.keys(failures).length > 0 && { failures: JSON.stringify(failures) }),
});

/** Next to a bare route that takes the same reports over as many connections; a `GET` of nothing is told besides. */
async function ingestOverHttp(
  { product, bareUrl, seconds, report }: BenchContext,
  agents: readonly TrialAgent[],
  bareRate: number,
): Promise<void> {
  const reports = (url: string, path: string): Promise<LoadResult> =>
    load({
      url,
      seconds,
      connections: agents.length,
      next: (connection, i) => ({
        method: "POST",
        path,
        token: (agents[connection] as TrialAgent).token,
        body: JSON.stringify({ ts: Date.now(), payload: sample(i) }),
      }),
    });
  const path = "/api/v1/agent_update/update";
  // The first report of each shows its token for the first time, which is another matter.
  await Promise.all(
    Array.from({ length: 16 }, async (_, lane) => {
      for (let i = lane; i < agents.length; i += 16) {
        const headers = { Authorization: `Bearer ${agents[i]?.token}`, "Content-Type": "application/json" };
        const body = JSON.stringify({ payload: sample(0) });
        await (await fetch(`${product.url}${path}`, { method: "POST", headers, body })).arrayBuffer();
      }
    }),
  );
  const floor = await reports(bareUrl, "/report");
  report.add({
    what: `bare Hono route that takes the same reports, ${agents.length} at a time`,
    value: floor.perSecond,
    unit: "/s",
    details: latencies(floor),
  });
  await reports(product.url, path);
  const cpu = cpuOf(product, ["worker", "clickhouse"]);
  const result = await reports(product.url, path);
  report.add({
    what: `ingest over HTTP: single samples of 10 fields, ${agents.length} agents at a time`,
    value: result.perSecond,
    unit: "samples/s",
    ratio: { of: "bare Hono", value: result.perSecond / floor.perSecond, wanted: "at least 0.35" },
    details: { ...latencies(result), ...cpu.per(result.count), "next to a bare GET": result.perSecond / bareRate },
  });
}

/** Through the broker and the bridge into the store; and, to compare, through a broker and a bridge of their own into nothing. */
async function ingestOverMqtt(
  context: BenchContext,
  agents: readonly TrialAgent[],
  clickhouse: ReturnType<typeof clickhouseOf>,
): Promise<void> {
  const { product, supervisor, folder, report } = context;
  const count = Math.round((context.isQuick ? 500 : 3_000) * context.seconds);
  const stored = async (): Promise<number> => {
    const answer = await clickhouse.query({
      query: "SELECT count() AS count FROM points_v1 WHERE metric = 'mqtt_0' AND ap_id LIKE 'bench-%'",
      format: "JSONEachRow",
    });
    return Number((await answer.json<{ count: string }>())[0]?.count);
  };
  const cpu = cpuOf(context.product, ["worker", "clickhouse", "broker", "bridge"]);
  const throughStore = await throughBridge(product.urls.mqtt ?? "", agents, count, stored);
  const details = cpu.per(count);

  const taken = { count: 0 };
  const sink = createServer((request, response) => void answerAsService(product.url, taken, request, response));
  const sinkPort = await anyFreePort();
  await new Promise<void>((resolve) => sink.listen(sinkPort, "127.0.0.1", resolve));
  const [tcpPort, wsPort] = [await anyFreePort(), await anyFreePort()];
  await supervisor.start(
    brokerPart({
      dataDir: folder,
      host: "127.0.0.1",
      tcpPort,
      wsPort,
      jwksUrl: `${product.url}/.well-known/jwks.json`,
      issuer: "multi-access-network-controller",
    }),
  );
  const mqttUrl = `mqtt://127.0.0.1:${tcpPort}`;
  await supervisor.start({
    name: "bridge",
    command: process.execPath,
    args: [fileURLToPath(new URL("../bridge.ts", import.meta.url))],
    env: {
      SERVICE_URL: `http://127.0.0.1:${sinkPort}`,
      MQTT_URL: mqttUrl,
      BRIDGE_KEY: product.secret("BRIDGE_KEY"),
      BRIDGE_ID: "bench",
    },
    ready: async (lines) => lines.includes("Listening."),
  });
  const throughNothing = await throughBridge(mqttUrl, agents, count, async () => taken.count);
  sink.closeAllConnections();
  sink.close();
  report.add({ what: "bridge with no store behind it", value: throughNothing, unit: "samples/s" });
  report.add({
    what: "ingest over MQTT through the bridge: samples of 10 fields, QoS 1",
    value: throughStore,
    unit: "samples/s",
    ratio: {
      of: "the bridge with no store",
      value: throughStore / throughNothing,
      wanted: "at least 0.5, or 5,000 samples/s",
    },
    details,
  });
}

/** Says yes to everything, and lets the real service give out the token that the broker wants to see. */
async function answerAsService(
  url: string,
  taken: { count: number },
  request: import("node:http").IncomingMessage,
  response: import("node:http").ServerResponse,
): Promise<void> {
  if (request.url?.startsWith("/api/v1/token/")) {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    const headers = { "Content-Type": "application/x-www-form-urlencoded" };
    const answer = await fetch(`${url}${request.url}`, {
      method: "POST",
      headers,
      body: Buffer.concat(chunks).toString(),
    });
    response.end(await answer.text());
    return;
  }
  const { messages } = (await json(request)) as { messages: unknown[] };
  taken.count += messages.length;
  response.end(JSON.stringify({ results: messages.map(() => ({})) }));
}

const POLL_MS = 50;
const MAX_WAIT_MS = 120_000;

/** Publishes so many samples as fast as the broker takes them; how many a second have arrived, from the first to the last. */
async function throughBridge(
  mqttUrl: string,
  agents: readonly TrialAgent[],
  count: number,
  arrived: () => Promise<number>,
): Promise<number> {
  const clients = await Promise.all(
    agents.map(({ apId, token }) => connectAsync(mqttUrl, { username: apId, password: token, reconnectPeriod: 0 })),
  );
  const before = await arrived();
  const startedMs = performance.now();
  const startTs = Date.now() - count;
  await Promise.all(
    clients.map(async (client, lane) => {
      const topic = `agent/${agents[lane]?.apId}/data`;
      const sending: Promise<unknown>[] = [];
      for (let i = lane; i < count; i += clients.length) {
        const payload = Object.fromEntries(FIELDS.map((_, field) => [`mqtt_${field}`, i + field]));
        sending.push(client.publishAsync(topic, JSON.stringify({ ts: startTs + i, payload }), { qos: 1 }));
        if (sending.length >= IN_FLIGHT) await Promise.all(sending.splice(0));
      }
      await Promise.all(sending);
    }),
  );
  for (const endMs = performance.now() + MAX_WAIT_MS; (await arrived()) - before < count; await sleep(POLL_MS)) {
    if (performance.now() > endMs) throw new Error(`Only ${(await arrived()) - before} of ${count} samples arrived.`);
  }
  const tookS = (performance.now() - startedMs) / 1000;
  await Promise.all(clients.map((client) => client.endAsync(true)));
  return count / tookS;
}

const IN_FLIGHT = 50;
/** Agents that have a report under way at the same time. An insert costs the same for one as for many of them. */
const REPORTING = 2_000;
