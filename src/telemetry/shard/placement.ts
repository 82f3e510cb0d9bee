import type { Config } from "../../env.ts";
import { cityHash64 } from "../../lib/city-hash.ts";

/** Which shard an agent belongs to. */
export interface Placement {
  /** The number of shards. */
  count: number;
  shardOf(apId: string): number;
}

export const shardName = (shard: number): string => `shard-${shard}`;

/**
 * The agents of one shard are all on the same shard of ClickHouse. So the journal of a shard waits for that one only, if another shard of
 * ClickHouse does not respond.
 */
export function createPlacement({
  AGENT_SHARDS: shards,
  CLICKHOUSE_SHARDS: stores,
}: Pick<Config, "AGENT_SHARDS" | "CLICKHOUSE_SHARDS">): Placement {
  return {
    count: shards * stores,
    shardOf: (apId) => (hash(apId) % shards) * stores + (stores === 1 ? 0 : Number(cityHash64(apId) % BigInt(stores))),
  };
}

/** Returns the FNV-1a hash: cheap, and uniform enough to distribute names. */
function hash(text: string): number {
  let state = 0x811c9dc5;
  for (let i = 0; i < text.length; i++) state = Math.imul(state ^ text.charCodeAt(i), 0x01000193);
  return state >>> 0;
}
