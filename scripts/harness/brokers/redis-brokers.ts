import { join } from "node:path";
import { DEFAULT_ISSUER } from "../../../src/env.ts";
import { brokerComponent } from "../../../src/programs/stack/components/broker-process.ts";
import { anyFreePort } from "../../../src/programs/stack/ports.ts";
import type { Component, Supervisor } from "../../../src/programs/stack/supervisor.ts";
import { redisComponent } from "./redis-server.ts";

/** Where a broker runs, and the service that it belongs to. */
export interface BrokerPlace {
  folder: string;
  supervisor: Supervisor;
  serviceUrl: string;
}

export interface RedisBroker {
  component: Component;
  url: string;
  wsUrl: string;
}

/** Starts our own brokers, which share their sessions and messages through a new Redis. */
export async function startRedisBrokers(
  { folder, supervisor, serviceUrl }: BrokerPlace,
  count: number,
): Promise<RedisBroker[]> {
  const redis = await redisComponent(join(folder, "redis"));
  await supervisor.start(redis.component);
  const jwksUrl = `${serviceUrl}/.well-known/jwks.json`;
  return await Promise.all(
    Array.from({ length: count }, async (_, i) => {
      const name = `broker-${i + 1}`;
      const [tcpPort, wsPort] = await Promise.all([anyFreePort(), anyFreePort()]);
      const options = { dataDir: join(folder, name), host: "127.0.0.1", tcpPort, wsPort, jwksUrl };
      const component = { ...brokerComponent({ ...options, issuer: DEFAULT_ISSUER, redisUrl: redis.url }), name };
      await supervisor.start(component);
      return { component, url: `mqtt://127.0.0.1:${tcpPort}`, wsUrl: `ws://127.0.0.1:${wsPort}` };
    }),
  );
}
