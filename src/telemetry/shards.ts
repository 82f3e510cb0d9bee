import { Unavailable } from "../errors.ts";
import type { AgentShard } from "./agent-shard.ts";
import type { AgentSample } from "./store.ts";

/** The way to an agent's shard: agents are spread over a few objects by their names. */
export interface Shards {
  /** Returns when the samples have been committed. */
  append(samples: readonly AgentSample[]): Promise<void>;
}

export function createShards(namespace: DurableObjectNamespace<AgentShard>, count: number): Shards {
  return {
    async append(samples) {
      const byShard = Map.groupBy(samples, ({ apId }) => hash(apId) % count);
      const appended = await Promise.all(
        [...byShard].map(([shard, its]) => namespace.getByName(`shard-${shard}`).append(its)),
      );
      if (!appended.every((outcome) => outcome === "committed")) {
        throw new Unavailable("telemetry store", new Error("A shard could not commit"));
      }
    },
  };
}

/** FNV-1a: cheap, and even enough to spread names. */
function hash(text: string): number {
  let state = 0x811c9dc5;
  for (let i = 0; i < text.length; i++) state = Math.imul(state ^ text.charCodeAt(i), 0x01000193);
  return state >>> 0;
}
