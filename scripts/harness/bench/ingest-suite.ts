import { DEFAULT_ISSUER } from "../../../src/env.ts";
import { print } from "../../../src/programs/shared/cli.ts";
import { bridgeComponent } from "../../../src/programs/stack/components/bridge-process.ts";
import { brokerComponent } from "../../../src/programs/stack/components/broker-process.ts";
import { anyFreePort } from "../../../src/programs/stack/ports.ts";
import { makeAgents, makeUser, type TestAgent } from "../accounts.ts";
import { countPoints } from "../clickhouse.ts";
import type { ApiClient } from "../client.ts";
import { forEachConcurrently } from "../stats.ts";
import { UPDATE_PATH } from "../telemetry-oracle.ts";
import { cpuOf, untilIdle } from "../usage.ts";
import { benchCharts } from "./chart-suite.ts";
import type { LoadResult } from "./load.ts";
import { MQTT_FIELDS, publishThroughBridge, startSink } from "./mqtt-load.ts";
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
  const tenSamples = (connection: number, i: number) => {
    const ts = Date.now();
    const samples = Array.from({ length: 10 }, (_, age) => ({ ts: ts - age, payload: fields("field", i) }));
    return { path: UPDATE_PATH, token: agents[connection]?.token, body: JSON.stringify({ samples }) };
  };
  const batches = await load(context, tenSamples, { connections: all, components: ["worker", "clickhouse"] });
  const ratio = { of: "single samples per second", value: (10 * batches.perSecond) / perSecond };
  report.add(
    `ingest over HTTP: ten samples per report, ${all} agents at a time`,
    batches.perSecond,
    "reports/s",
    batches.details,
    ratio,
  );
  // The next load begins with an empty journal.
  await untilIdle(product.pidOf("clickhouse"));
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
  const arrived = () => countPoints(clickhouse, `${MQTT_FIELDS}_0`, "bench-%");
  const samples = { agents, count };
  const throughStore = await publishThroughBridge({ ...samples, mqttUrls: [product.urls.mqtt ?? ""], arrived });
  const details = cpuPer(count);

  const sink = await startSink(client);
  const [tcpPort, wsPort] = await Promise.all([anyFreePort(), anyFreePort()]);
  const jwksUrl = `${product.url}/.well-known/jwks.json`;
  const host = "127.0.0.1";
  await supervisor.start(brokerComponent({ dataDir: folder, host, tcpPort, wsPort, jwksUrl, issuer: DEFAULT_ISSUER }));
  const mqttUrl = `mqtt://127.0.0.1:${tcpPort}`;
  const apiKey = product.secret("BRIDGE_KEY");
  await supervisor.start(bridgeComponent({ serviceUrl: sink.url, mqttUrl, apiKey }));
  const throughNothing = await publishThroughBridge({ ...samples, mqttUrls: [mqttUrl], arrived: () => sink.received });
  sink.close();
  report.add("bridge with no store behind it", throughNothing, "samples/s");
  const wanted = "at least 0.5, or 5,000 samples/s";
  const ratio = { of: "the bridge with no store", value: throughStore / throughNothing, wanted };
  const what = "ingest over MQTT through the bridge: samples of 10 fields, QoS 1";
  report.add(what, throughStore, "samples/s", details, ratio);
}
