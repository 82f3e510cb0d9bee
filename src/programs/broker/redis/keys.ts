import type { ChainableCommander, Redis } from "ioredis";

/** The keys of the broker in Redis. scripts.ts describes them. */
export const KEYS = {
  wildcards: "broker:wildcards",
  bytes: "broker:bytes",
  retained: "broker:retained",
  wills: "broker:wills",
  ended: "broker:ended",
  agents: "broker:agents",
  nodes: "broker:nodes",
  subscriptions: (clientId: string) => `broker:subscriptions:${clientId}`,
  subscribers: (topic: string) => `broker:subscribers:${topic}`,
  queue: (clientId: string) => `broker:queue:${clientId}`,
  incoming: (clientId: string) => `broker:incoming:${clientId}`,
  session: (clientId: string) => `broker:session:${clientId}`,
  agent: (apId: string) => `broker:agent:${apId}`,
  lease: (node: string) => `broker:lease:${node}`,
  connected: (node: string) => `broker:connected:${node}`,
};

/** Executes commands in one step. Throws if one of them fails. */
export async function transact(redis: Redis, commands: (multi: ChainableCommander) => void): Promise<void> {
  const multi = redis.multi();
  commands(multi);
  for (const [error] of (await multi.exec()) ?? []) if (error !== null) throw error;
}
