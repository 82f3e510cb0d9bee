import { withDeadline } from "../../lib/deadline.ts";
import { Unavailable } from "../../lib/errors.ts";
import { describeError, log } from "../../lib/log.ts";
import { CallBatcher } from "../../storage/call-batcher.ts";
import { callObject } from "../../storage/durable-objects.ts";
import type { SeriesQuery } from "../store/series-queries.ts";
import type { AgentSample } from "../store/telemetry-store.ts";
import type { AgentShard, AppendResult } from "./agent-shard.ts";
import type { ChangeFeedPage, FeedCursor, SelectionPage } from "./change-feed.ts";
import { parseSamples } from "./journal.ts";
import type { LatestColumns, LatestMetrics } from "./latest.ts";
import type { PendingSamples } from "./pending-reads.ts";
import { type Placement, shardName } from "./placement.ts";
import type { ReceiptColumns, SourceReceipt } from "./receipts.ts";
import type { RecentSums } from "./recent-minutes.ts";

const COMPONENT = "telemetry store";
/** How long samples wait for a call in flight. Short in comparison with the insert that follows. */
const MAX_HOLD_MS = 5;
/** Characters in one call. The platform's limit is 32 MiB. */
const MAX_CALL_LENGTH = 4 * 1024 * 1024;
/** Characters in all calls in progress. An isolate has 128 MB for everything. */
const MAX_IN_FLIGHT_LENGTH = 32 * 1024 * 1024;
/** Longer than the time-out of the store, so that the store's error arrives first. */
const TIMEOUT_MS = 40_000;

/** Calls the shards. An agent's shard follows from the hash of its name. */
export interface ShardClient {
  /** Stores the samples in the journals of their shards. They are durable when it resolves. */
  append(samples: readonly AgentSample[]): Promise<void>;
  /** Returns the agent's samples in a range of time that may not be in the telemetry store yet. */
  pending(apId: string, fromMs: number, toMs: number): Promise<Pending>;
  /** Returns the samples of several agents in a range of time that may not be in the telemetry store yet. Throws `Unavailable` if there are too many. */
  pendingOfMany(apIds: readonly string[], fromMs: number, toMs: number): Promise<AgentSample[]>;
  /** Writes the journals of these agents to the telemetry store. Throws `Unavailable` if the store does not respond. */
  flush(apIds: readonly string[]): Promise<void>;
  /** Returns when the service last received something, by agent, as far as the shards know. Default: all agents. */
  received(apIds?: readonly string[]): Promise<Received>;
  /** Returns the sources of an agent's samples, the latest first, as far as its shard knows. Returns none if it does not respond. */
  sources(apId: string): Promise<SourceReceipt[]>;
  /** Returns points from the live window, one JSON text for each metric, or `undefined` if it lacks some points or has too many. */
  read(query: SeriesQuery & { metrics: readonly string[] }): Promise<string[] | undefined>;
  /** Returns the agent's samples that were committed after a cursor. Waits up to `waitMs` if there are none. */
  news(apId: string, cursor: FeedCursor | undefined, waitMs: number): Promise<ChangeFeedPage>;
  /**
   * Returns the samples of several agents that were committed after the cursors of their shards, one page of them. Starts at the present
   * in shards without a cursor.
   */
  newsOfMany(apIds: readonly string[], places: ReadonlyMap<number, FeedCursor>): Promise<SelectionNews>;
  /** Returns the latest values of all agents, except those of shards that do not respond. */
  latest(): Promise<Map<string, LatestMetrics>>;
  /** Returns the sums of some metrics in the last minutes, by shard. Returns `undefined` if a shard does not respond. */
  recentMinutes(metrics: readonly string[], fromMs: number): Promise<RecentSums[] | undefined>;
  /** Makes all shards load the alert rules. Those that do not respond load them later. */
  refreshRules(): Promise<void>;
  /** Returns how many samples are in the journal, by shard, except shards that do not respond. */
  waiting(): Promise<Map<number, number>>;
}

/** An agent's samples that may not be in the store yet. */
export interface Pending {
  samples: AgentSample[];
  /** Whether the store does not respond. */
  isStoreDown: boolean;
  /** Whether the first ones are missing, because there are too many. */
  isTruncated: boolean;
}

export interface Received {
  /** In milliseconds since the epoch, by agent. */
  times: Map<string, number>;
  /** Whether all shards responded. */
  isComplete: boolean;
}

/** The new samples of several agents, and the cursors of their shards to continue from. */
export interface SelectionNews {
  places: Map<number, FeedCursor>;
  samples: AgentSample[];
  hasMore: boolean;
}

/** Time-outs for one shard when all shards are called. The second one allows for an insert. */
const CALL_ALL_TIMEOUT_MS = 1_000;
const DRAIN_TIMEOUT_MS = 2_500;

export function createShardClient(
  namespace: DurableObjectNamespace<AgentShard>,
  { count, shardOf }: Placement,
): ShardClient {
  // `idFromName` computes a hash, so the ids are cached.
  const ids = new Map<number, DurableObjectId>();
  const stubOf = (shard: number) => {
    const id = ids.get(shard) ?? namespace.idFromName(shardName(shard));
    ids.set(shard, id);
    return namespace.get(id);
  };

  const batcherFor = (shard: number) =>
    new CallBatcher<string, void>({
      component: COMPONENT,
      maxHoldMs: MAX_HOLD_MS,
      maxWeight: MAX_CALL_LENGTH,
      timeoutMs: TIMEOUT_MS,
      call: async (texts) => {
        const outcome = await callObject<AppendResult>(COMPONENT, stubOf(shard).append(texts.join()));
        if (outcome !== "committed")
          throw new Unavailable(COMPONENT, new Error("The shard could not store the samples"));
        return texts.map(() => undefined);
      },
    });
  const batchers = Array.from({ length: count }, (_, shard) => batcherFor(shard));
  let inFlightLength = 0;

  const appendTo = async (shard: number, samples: readonly AgentSample[]): Promise<void> => {
    const text = JSON.stringify(samples).slice(1, -1);
    if (inFlightLength + text.length > MAX_IN_FLIGHT_LENGTH)
      throw new Unavailable(COMPONENT, new Error("Too many samples are in flight"));
    inFlightLength += text.length;
    try {
      await batchers[shard]?.add(text, text.length);
    } finally {
      inFlightLength -= text.length;
    }
  };

  const allShards = Array.from({ length: count }, (_, shard) => shard);
  /** Calls several shards. Returns the results, except of shards that fail or do not respond. */
  const callAll = async <T>(
    call: (stub: DurableObjectStub<AgentShard>, shard: number) => Promise<T>,
    { shards = allShards, timeoutMs = CALL_ALL_TIMEOUT_MS }: { shards?: readonly number[]; timeoutMs?: number } = {},
  ): Promise<Map<number, T>> => {
    const results = new Map<number, T>();
    const calls = shards.map(async (shard) => {
      try {
        results.set(shard, await withDeadline(timeoutMs, async () => await call(stubOf(shard), shard)));
      } catch (error) {
        log.warn("shard call failed", { shard, error: describeError(error) });
      }
    });
    await Promise.all(calls);
    return results;
  };

  return {
    async append(samples) {
      const byShard = Map.groupBy(samples, ({ apId }) => shardOf(apId));
      await Promise.all([...byShard].map(async ([shard, group]) => await appendTo(shard, group)));
    },

    async pending(apId, fromMs, toMs) {
      const call = stubOf(shardOf(apId)).pending(apId, fromMs, toMs);
      const { text, ...state } = await callObject<PendingSamples>(COMPONENT, call);
      return { samples: parseSamples(text), ...state };
    },

    async pendingOfMany(apIds, fromMs, toMs) {
      const read = async ([shard, names]: [number, string[]]): Promise<AgentSample[]> => {
        const call = stubOf(shard).pendingOfMany(names, fromMs, toMs);
        const { text, isTruncated } = await callObject<PendingSamples>(COMPONENT, call);
        if (isTruncated) throw new Unavailable(COMPONENT, new Error("The journal has too many samples for one read"));
        return parseSamples(text);
      };
      return (await Promise.all([...Map.groupBy(apIds, shardOf)].map(read))).flat();
    },

    async flush(apIds) {
      const write = async (shard: number): Promise<void> => {
        if (!(await callObject<boolean>(COMPONENT, stubOf(shard).flush())))
          throw new Unavailable(COMPONENT, new Error("The shard could not write its journal"));
      };
      await Promise.all([...new Set(apIds.map(shardOf))].map(write));
    },

    async received(apIds) {
      const byShard = apIds && Map.groupBy(apIds, shardOf);
      const called = byShard === undefined ? allShards : [...byShard.keys()];
      const results = await callAll<ReceiptColumns>((stub, shard) => stub.received(byShard?.get(shard)), {
        shards: called,
      });
      const times = new Map<string, number>();
      for (const { apIds, receivedMs } of results.values())
        for (const [i, apId] of apIds.entries()) times.set(apId, receivedMs[i] ?? 0);
      return { times, isComplete: results.size === called.length };
    },

    async sources(apId) {
      const shard = shardOf(apId);
      const results = await callAll<SourceReceipt[]>((stub) => stub.sources(apId), { shards: [shard] });
      return results.get(shard) ?? [];
    },

    async read({ apId, metrics, fromMs, toMs }) {
      return await callObject(COMPONENT, stubOf(shardOf(apId)).read(apId, [...metrics], { fromMs, toMs }));
    },

    async news(apId, cursor, waitMs) {
      return await callObject(COMPONENT, stubOf(shardOf(apId)).news(apId, cursor, waitMs));
    },

    async newsOfMany(apIds, places) {
      const news: SelectionNews = { places: new Map(), samples: [], hasMore: false };
      const read = async ([shard, names]: [number, string[]]): Promise<void> => {
        const call = stubOf(shard).newsOfMany(names, places.get(shard));
        const { place, samples, hasMore } = await callObject<SelectionPage>(COMPONENT, call);
        news.places.set(shard, place);
        for (const sample of samples) news.samples.push(sample);
        news.hasMore ||= hasMore;
      };
      await Promise.all([...Map.groupBy(apIds, shardOf)].map(read));
      return news;
    },

    async latest() {
      const results = await callAll<LatestColumns>((shard) => shard.latest());
      const latest = new Map<string, LatestMetrics>();
      for (const { apIds, load, quality, users } of results.values()) {
        for (const [i, apId] of apIds.entries())
          latest.set(apId, { load: load[i] ?? null, quality: quality[i] ?? null, users: users[i] ?? null });
      }
      return latest;
    },

    async recentMinutes(metrics, fromMs) {
      const results = await callAll<RecentSums>((shard) => shard.recentMinutes([...metrics], fromMs), {
        timeoutMs: DRAIN_TIMEOUT_MS,
      });
      return results.size === count ? [...results.values()] : undefined;
    },

    async refreshRules() {
      await callAll((shard) => shard.refreshRules(), { timeoutMs: DRAIN_TIMEOUT_MS });
    },

    async waiting() {
      return await callAll<number>((shard) => shard.waiting());
    },
  };
}
