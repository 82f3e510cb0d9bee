import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { json } from "node:stream/consumers";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { connectAsync } from "mqtt";
import { DEFAULT_ISSUER } from "../../../src/env.ts";
import { brokerComponent } from "../../../src/programs/stack/components/broker-process.ts";
import { anyFreePort } from "../../../src/programs/stack/ports.ts";
import type { TestAgent } from "../accounts.ts";
import type { ClickHouse } from "../clickhouse.ts";
import { cpuOf } from "../usage.ts";
import type { BenchContext } from "./context.ts";
import { fields } from "./samples.ts";

/** Through the broker and the bridge into the store; and, to compare, through a broker and a bridge of their own into nothing. */
export async function ingestOverMqtt(
  context: BenchContext,
  agents: readonly TestAgent[],
  clickhouse: ClickHouse,
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
    brokerComponent({
      dataDir: folder,
      host: "127.0.0.1",
      tcpPort,
      wsPort,
      jwksUrl: `${product.url}/.well-known/jwks.json`,
      issuer: DEFAULT_ISSUER,
    }),
  );
  const mqttUrl = `mqtt://127.0.0.1:${tcpPort}`;
  await supervisor.start({
    name: "bridge",
    command: process.execPath,
    args: [fileURLToPath(new URL("../../../src/programs/bridge/main.ts", import.meta.url))],
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
    id: "ingest-mqtt",
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
  request: IncomingMessage,
  response: ServerResponse,
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

const IN_FLIGHT = 50;
const POLL_MS = 50;
const MAX_WAIT_MS = 120_000;

/** Publishes so many samples as fast as the broker takes them; how many a second have arrived, from the first to the last. */
async function throughBridge(
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
  await Promise.all(
    clients.map(async (client, lane) => {
      const topic = `agent/${agents[lane]?.apId}/data`;
      const sending: Promise<unknown>[] = [];
      for (let i = lane; i < count; i += clients.length) {
        const payload = fields("mqtt", i);
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
