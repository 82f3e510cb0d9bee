import { createServer, type IncomingMessage } from "node:http";
import { json, text } from "node:stream/consumers";
import { connectAsync } from "mqtt";
import { DEFAULT_ISSUER } from "../../../src/env.ts";
import { print } from "../../../src/programs/shared/cli.ts";
import { bridgeComponent } from "../../../src/programs/stack/components/bridge-process.ts";
import { brokerComponent } from "../../../src/programs/stack/components/broker-process.ts";
import { anyFreePort } from "../../../src/programs/stack/ports.ts";
import { makeAgents, makeUser, type TestAgent } from "../accounts.ts";
import { countPoints } from "../clickhouse.ts";
import type { ApiClient } from "../client.ts";
import { until } from "../product.ts";
import { forEachConcurrently } from "../stats.ts";
import { UPDATE_PATH } from "../telemetry-oracle.ts";
import { cpuOf } from "../usage.ts";
import { benchCharts } from "./chart-suite.ts";
import type { LoadResult } from "./load.ts";
import { type BenchContext, CONNECTIONS, fields, load, measureBareHono, type SuiteLoad } from "./suite.ts";

/** From the access point to the chart: samples in, charts out, and their costs as the data grows. */

/** Agents that report at the same time. One insert serves many of them. */
const REPORTING = 2_000;
const PUBLISHING = 50;

export async function benchTelemetry(context: BenchContext): Promise<void> {
  const { product, isQuick } = context;
  const sizes = isQuick ? [10, 100] : [10, 100, 1_000, 10_000];
  print(`Creating ${sizes.at(-1)} agents.`);
  const agents = await makeAgents(product.dataDir, "bench", sizes.at(-1) ?? 0);
  await ingestOverHttp(context, agents.slice(0, REPORTING));
  await ingestOverMqtt(context, agents.slice(0, PUBLISHING));
  await benchCharts(context, agents, sizes);
}

/** Compares with a bare route that takes the same reports over as many connections. */
async function ingestOverHttp(context: BenchContext, agents: readonly TestAgent[]): Promise<void> {
  const { product, client, bare, report } = context;
  const all = agents.length;
  const reports = (options: SuiteLoad = {}, path = UPDATE_PATH): Promise<LoadResult> => {
    const next = (connection: number, i: number) => {
      const body = JSON.stringify({ ts: Date.now(), payload: fields("field", i) });
      return { path, token: agents[connection]?.token, body };
    };
    return load(context, next, { connections: all, ...options });
  };
  // The first request with a token costs more, since the service looks up its account.
  await forEachConcurrently(agents, async ({ token }) => {
    await client.request(UPDATE_PATH, { token, body: { payload: fields("field", 0) } });
  });
  const bareRate = await measureBareHono(context);
  const floor = await reports({ url: bare.url }, "/report");
  const what = `bare Hono route that takes the same reports, ${all} at a time`;
  report.add(what, floor.perSecond, "/s", floor.details);
  for (const connections of [all / 100, all / 10].map(Math.ceil)) {
    const { perSecond, details } = await reports({ connections });
    report.add(`ingest over HTTP, ${connections} agents at a time`, perSecond, "samples/s", details);
  }
  const { token: adminToken } = await makeUser(product.dataDir, "bench-ingest@example.com", "none", ["admin"]);
  const half = all / 2;
  for (const [what, options] of [
    [`${CONNECTIONS} agents at a time`, { connections: CONNECTIONS }],
    [`${half} agents, each once a second`, { connections: half, pacePerSecond: half }],
  ] as const) {
    const insertsBefore = await countInserts(client, adminToken);
    const { perSecond, count, details } = await reports({ ...options, components: ["clickhouse"] });
    const seconds = count / perSecond;
    // One machine has one shard.
    const inserts = ((await countInserts(client, adminToken)) - insertsBefore) / seconds;
    const cpuUs = Number(details["CPU µs of clickhouse each"]);
    report.add(`ingest over HTTP, ${what}`, perSecond, "samples/s", {
      ...details,
      "inserts per second": inserts,
    });
    report.add(
      `CPU of ClickHouse for each report, ${what}`,
      cpuUs,
      "µs",
      {},
      { of: "250 µs", value: cpuUs / 250, wanted: "at most 1" },
    );
    report.require(`at most 2 inserts per second and shard, ${what}`, inserts <= 2, { inserts });
  }
  // Warms up V8.
  await reports();
  const { perSecond, details } = await reports({ components: ["worker", "clickhouse"] });
  report.add(
    `ingest over HTTP: single samples of 10 fields, ${all} agents at a time`,
    perSecond,
    "samples/s",
    { ...details, "next to a bare GET": perSecond / bareRate },
    { of: "bare Hono", value: perSecond / floor.perSecond, wanted: "at least 0.35" },
  );
}

/** Returns how many inserts the product has made. */
async function countInserts(client: ApiClient, token: string): Promise<number> {
  // The first scrape makes the shards report what they have counted, and may not see it yet.
  await client.request("/metrics", { token });
  const { text } = await client.request("/metrics", { token });
  return Number(/^controller_ingest_batches_total (\d+)/m.exec(text)?.[1] ?? Number.NaN);
}

/** Compares with a broker and a bridge of the same kind that have no store behind them. */
async function ingestOverMqtt(context: BenchContext, agents: readonly TestAgent[]): Promise<void> {
  const { product, client, clickhouse, supervisor, folder, report } = context;
  const count = Math.round((context.isQuick ? 500 : 3_000) * context.seconds);
  const cpuPer = cpuOf(product, ["worker", "clickhouse", "broker", "bridge"]);
  const stored = () => countPoints(clickhouse, "mqtt_0", "bench-%");
  const throughStore = await publishThroughBridge(product.urls.mqtt ?? "", agents, count, stored);
  const details = cpuPer(count);

  let received = 0;
  /** Accepts all messages. Forwards logins, since the broker needs tokens of the real service. */
  const respond = async (request: IncomingMessage): Promise<string> => {
    if (request.url?.startsWith("/api/v1/token/"))
      return (await client.request(request.url, { body: new URLSearchParams(await text(request)) })).text;
    const { messages } = (await json(request)) as { messages: unknown[] };
    received += messages.length;
    return JSON.stringify({ results: messages.map(() => ({})) });
  };
  const sink = createServer(async (request, response) => void response.end(await respond(request)));
  const [sinkPort, tcpPort, wsPort] = await Promise.all([anyFreePort(), anyFreePort(), anyFreePort()]);
  await new Promise<void>((resolve) => sink.listen(sinkPort, "127.0.0.1", resolve));
  const jwksUrl = `${product.url}/.well-known/jwks.json`;
  const host = "127.0.0.1";
  await supervisor.start(brokerComponent({ dataDir: folder, host, tcpPort, wsPort, jwksUrl, issuer: DEFAULT_ISSUER }));
  const mqttUrl = `mqtt://127.0.0.1:${tcpPort}`;
  const serviceUrl = `http://127.0.0.1:${sinkPort}`;
  await supervisor.start(bridgeComponent({ serviceUrl, mqttUrl, apiKey: product.secret("BRIDGE_KEY") }));
  const throughNothing = await publishThroughBridge(mqttUrl, agents, count, async () => received);
  sink.closeAllConnections();
  sink.close();
  report.add("bridge with no store behind it", throughNothing, "samples/s");
  const wanted = "at least 0.5, or 5,000 samples/s";
  const ratio = { of: "the bridge with no store", value: throughStore / throughNothing, wanted };
  const what = "ingest over MQTT through the bridge: samples of 10 fields, QoS 1";
  report.add(what, throughStore, "samples/s", details, ratio);
}

const IN_FLIGHT = 50;
const POLL_MS = 50;
const MAX_WAIT_MS = 120_000;

/** Publishes samples as fast as the broker accepts them. Returns how many per second have arrived, from the first to the last. */
async function publishThroughBridge(
  mqttUrl: string,
  agents: readonly TestAgent[],
  count: number,
  arrived: () => Promise<number>,
): Promise<number> {
  const clients = await Promise.all(
    agents.map(({ apId, token }) => connectAsync(mqttUrl, { username: apId, password: token, reconnectPeriod: 0 })),
  );
  const before = await arrived();
  const startedMs = performance.now();
  const startTs = Date.now() - count;
  const publish = async (i: number): Promise<void> => {
    const lane = i % clients.length;
    const message = JSON.stringify({ ts: startTs + i, payload: fields("mqtt", i) });
    await clients[lane]?.publishAsync(`agent/${agents[lane]?.apId}/data`, message, { qos: 1 });
  };
  await forEachConcurrently([...Array(count).keys()], publish, IN_FLIGHT * clients.length);
  await until(async () => (await arrived()) - before >= count, MAX_WAIT_MS, POLL_MS);
  const tookS = (performance.now() - startedMs) / 1000;
  await Promise.all(clients.map((client) => client.endAsync(true)));
  return count / tookS;
}
