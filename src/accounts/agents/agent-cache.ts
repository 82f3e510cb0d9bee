import type { ScopedAgent } from "../../auth/agent-scope.ts";
import { TtlCache } from "../../lib/ttl-cache.ts";
import { type ChangedObjects, concernedBy, LABELLED_AGENTS } from "../audit-feed.ts";
import type { AgentStore } from "./agent-store.ts";

/** Caches which agents exist, and their labels. Authentication reads the audit feed and reports the changes before each request. */
export interface AgentCache {
  find(apId: string): Promise<ScopedAgent | undefined>;
  /** Returns those of the agents that exist, by name, with one query at most. */
  findMany(apIds: readonly string[]): Promise<Map<string, ScopedAgent>>;
  /** Removes the agents that have changed. */
  remove(changed: ChangedObjects): void;
}

/** A limit for agents that are deleted without an entry in the audit trail. */
const CACHE_MS = 60_000;
const MAX_CACHED = 10_000;

export function createAgentCache(
  agents: Pick<AgentStore, "find" | "watched">,
  now: () => number = Date.now,
): AgentCache {
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

    async findMany(apIds) {
      const found = new Map<string, ScopedAgent>();
      const uncached: string[] = [];
      for (const apId of apIds) {
        const cached = cache.get(apId);
        if (cached === undefined) uncached.push(apId);
        else found.set(apId, cached);
      }
      const removalsBefore = removals;
      for (const { apId, labels, ownerId } of uncached.length === 0 ? [] : await agents.watched({ apIds: uncached })) {
        const agent = { apId, labels, ownerId };
        found.set(apId, agent);
        if (removals === removalsBefore) cache.set(apId, agent, now() + CACHE_MS);
      }
      return found;
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
