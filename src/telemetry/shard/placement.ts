/** Which shard an agent belongs to. */

export const shardOf = (apId: string, shards: number): number => hash(apId) % shards;
export const shardName = (shard: number): string => `shard-${shard}`;

/** Returns the FNV-1a hash: cheap, and uniform enough to distribute names. */
function hash(text: string): number {
  let state = 0x811c9dc5;
  for (let i = 0; i < text.length; i++) state = Math.imul(state ^ text.charCodeAt(i), 0x01000193);
  return state >>> 0;
}
