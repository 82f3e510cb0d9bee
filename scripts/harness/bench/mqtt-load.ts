import { createServer, type IncomingMessage } from "node:http";
import type { AddressInfo } from "node:net";
import { json, text } from "node:stream/consumers";
import { connectAsync } from "mqtt";
import type { TestAgent } from "../accounts.ts";
import type { ApiClient } from "../client.ts";
import { until } from "../product.ts";
import { forEachConcurrently } from "../stats.ts";
import { fields } from "./suite.ts";

/** Samples over MQTT, and a service that only counts them. */

const IN_FLIGHT = 50;
const POLL_MS = 50;
const MAX_WAIT_MS = 120_000;

/** The prefix of the fields of each sample. */
export const MQTT_FIELDS = "mqtt";

export interface Sink {
  url: string;
  /** Number of messages so far. */
  received: number;
  close(): void;
}

/** Starts a service for bridges that accepts all messages. It forwards logins, since the broker needs tokens of the real service. */
export async function startSink(client: ApiClient): Promise<Sink> {
  const respond = async (request: IncomingMessage): Promise<string> => {
    if (request.url?.startsWith("/api/v1/token/"))
      return (await client.request(request.url, { body: new URLSearchParams(await text(request)) })).text;
    const { messages } = (await json(request)) as { messages: unknown[] };
    sink.received += messages.length;
    return JSON.stringify({ results: messages.map(() => ({})) });
  };
  const server = createServer(async (request, response) => void response.end(await respond(request)));
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const sink: Sink = {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    received: 0,
    close() {
      server.closeAllConnections();
      server.close();
    },
  };
  return sink;
}

export interface MqttLoad {
  /** The agents are distributed over these brokers. */
  mqttUrls: readonly string[];
  agents: readonly TestAgent[];
  /** Number of samples. */
  count: number;
  /** Returns the number of samples that have arrived. */
  arrived: () => Promise<number> | number;
}

/** Publishes samples as fast as the brokers accept them. Returns how many per second have arrived, from the first to the last. */
export async function publishThroughBridge({ mqttUrls, agents, count, arrived }: MqttLoad): Promise<number> {
  const clients = await Promise.all(
    agents.map(({ apId, token }, i) =>
      connectAsync(mqttUrls[i % mqttUrls.length] ?? "", { username: apId, password: token, reconnectPeriod: 0 }),
    ),
  );
  const before = await arrived();
  const startedMs = performance.now();
  const startTs = Date.now() - count;
  const publish = async (i: number): Promise<void> => {
    const lane = i % clients.length;
    const message = JSON.stringify({ ts: startTs + i, payload: fields(MQTT_FIELDS, i) });
    await clients[lane]?.publishAsync(`agent/${agents[lane]?.apId}/data`, message, { qos: 1 });
  };
  await forEachConcurrently([...Array(count).keys()], publish, IN_FLIGHT * clients.length);
  await until(async () => (await arrived()) - before >= count, MAX_WAIT_MS, POLL_MS);
  const tookS = (performance.now() - startedMs) / 1000;
  await Promise.all(clients.map((client) => client.endAsync(true)));
  return count / tookS;
}
