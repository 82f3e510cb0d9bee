import { setTimeout as sleep } from "node:timers/promises";
import { connectAsync } from "mqtt";
import { Addresses, splitAddresses } from "../../../src/lib/addresses.ts";
import { subscribe } from "../../../src/programs/bridge/subscriber.ts";
import { connectToNodes } from "../../../src/programs/shared/broker-nodes.ts";

/** Agents that publish to the nodes of a broker without a pause, and a bridge that receives their messages. */

export interface Login {
  username: string;
  password: string;
  clientId: string;
}

export interface BrokerLoad {
  /** What the broker has acknowledged to the agents. */
  acknowledged: Set<string>;
  /** What the bridge has received, and how often. */
  received: Map<string, number>;
  /** Returns what the broker has acknowledged and the bridge has not received. */
  missing(): string[];
  stopAgents(): Promise<void>;
  stop(): Promise<void>;
}

const IN_FLIGHT = 20;
const RECONNECT_MS = 100;

const TOPICS = ["agent/+/data"];

/** @param nodes the URLs of the nodes, separated by commas; each agent begins with another one */
export async function startLoad(nodes: string, agents: readonly Login[], bridge: Login): Promise<BrokerLoad> {
  const urls = splitAddresses(nodes);
  // The broker must keep every message from the first one on.
  const subscriber = await connectAsync(urls[0] ?? "", { ...bridge, clean: false, reconnectPeriod: 0 });
  await subscriber.subscribeAsync(TOPICS, { qos: 1 });
  await subscriber.endAsync();
  const [agentsStop, bridgeStop] = [new AbortController(), new AbortController()];
  const acknowledged = new Set<string>();
  const received = new Map<string, number>();
  const publishing = agents.map((agent, i) => {
    const rotated = [...urls.slice(i % urls.length), ...urls.slice(0, i % urls.length)];
    return publish(rotated.join(","), agent, acknowledged, agentsStop.signal);
  });
  const receiving = receive(urls, bridge, received, bridgeStop.signal);
  const stopAgents = async () => {
    agentsStop.abort();
    await Promise.all(publishing);
  };
  return {
    acknowledged,
    received,
    missing: () => [...acknowledged].filter((message) => !received.has(message)),
    stopAgents,
    async stop() {
      await stopAgents();
      bridgeStop.abort();
      await receiving;
    },
  };
}

async function publish(nodes: string, agent: Login, acknowledged: Set<string>, signal: AbortSignal): Promise<void> {
  const client = connectToNodes(nodes, { ...agent, reconnectPeriod: RECONNECT_MS, reconnectOnConnackError: true });
  client.on("error", () => {});
  let count = 0;
  const publishNext = async (): Promise<void> => {
    while (!signal.aborted) {
      const message = `${agent.username} ${++count}`;
      const published = client.publishAsync(`agent/${agent.username}/data`, message, { qos: 1 });
      // The client sends a message again after a reconnect, until the broker has acknowledged it.
      await published.then(
        () => acknowledged.add(message),
        () => {},
      );
    }
  };
  for (let i = 0; i < IN_FLIGHT; i++) void publishNext();
  await new Promise<void>((resolve) => signal.addEventListener("abort", () => resolve(), { once: true }));
  // What is in flight never settles.
  await client.endAsync(true);
}

async function receive(
  urls: readonly string[],
  bridge: Login,
  received: Map<string, number>,
  signal: AbortSignal,
): Promise<void> {
  const nodes = new Addresses(urls);
  const onMessage = ({ payload, acknowledge }: { payload: Buffer; acknowledge(): void }): undefined => {
    const message = payload.toString();
    received.set(message, (received.get(message) ?? 0) + 1);
    acknowledge();
  };
  const options = { ...bridge, topics: TOPICS, signal, drained: async () => {}, onMessage };
  while (!signal.aborted) {
    await nodes.use((url) => subscribe({ url, ...options })).catch(() => {});
    await sleep(RECONNECT_MS);
  }
}
