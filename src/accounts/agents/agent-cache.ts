import type { ScopedAgent } from "../../auth/agent-scope.ts";
import { TtlCache } from "../../lib/ttl-cache.ts";
import { type ChangedObjects, concernedBy, LABELLED_AGENTS } from "../audit-feed.ts";
import type { AgentStore } from "./agent-store.ts";

/** Caches which agents exist, and their labels. Authentication reads the audit feed and reports the changes before each request. */
export interface AgentCache {
  find(apId: string): Promise<ScopedAgent | undefined>;
  /** Removes the agents that have changed. */
  remove(changed: ChangedObjects): void;
}

/** A limit for agents that are deleted without an entry in the audit trail. */
const CACHE_MS = 60_000;
const MAX_CACHED = 10_000;

export function createAgentCache(agents: Pick<AgentStore, "find">, now: () => number = Date.now): AgentCache {
  const cache = new TtlCache<ScopedAgent>({ maxEntries: MAX_CACHED, now });
  let removals = 0;

  return {
    async find(apId) {
      const cached = cache.get(apId);
      if (cached !== undefined) return cached;
      const removalsBefore = removals;
      const row = await agents.find(apId);
      if (row === undefined) return undefined;
      const agent = { apId, labels: row.labels, ownerId: row.ownerId };
      // A change may have been reported while the query ran, and the query may not have seen it.
      if (removals === removalsBefore) cache.set(apId, agent, now() + CACHE_MS);
      return agent;
    },

    remove(changed) {
      if (changed !== "everything" && changed.size === 0) return;
      removals++;
      const isConcerned = concernedBy(changed);
      const areAll = changed !== "everything" && changed.has(LABELLED_AGENTS);
      cache.deleteWhere(({ apId }) => areAll || isConcerned("agent", apId));
    },
  };
}
