import { cityHash64 } from "../../../src/lib/city-hash.ts";
import type { AgentSample } from "../../../src/telemetry/store/telemetry-store.ts";

/** Agents of a cluster with two shards. */

export const SHARDS = 2;

export const shardOfName = (apId: string): number => Number(cityHash64(apId) % BigInt(SHARDS));

/** Returns names of agents on a shard. */
export function namesOn(shard: number, prefix: string, count = 1): string[] {
  const names: string[] = [];
  for (let i = 0; names.length < count; i++) {
    const name = `${prefix}-${i}`;
    if (shardOfName(name) === shard) names.push(name);
  }
  return names;
}

export const sampleOf = (apId: string, tsMs: number, value = 1): AgentSample => ({
  apId,
  tsMs,
  metrics: { n: value },
  texts: { t: "x" },
  receivedMs: tsMs,
});
