import { withDeadline } from "../../lib/deadline.ts";
import { Unavailable } from "../../lib/errors.ts";
import { describeError, log } from "../../lib/log.ts";
import { callObject } from "../../storage/durable-objects.ts";
import type { SeriesQuery } from "../store/series-queries.ts";
import type { AgentSample } from "../store/telemetry-store.ts";
import type { AgentShard, AppendResult } from "./agent-shard.ts";
import { CallBatcher } from "./call-batcher.ts";
import type { ChangeFeedPage, FeedCursor, SelectionPage } from "./change-feed.ts";
import type { LatestColumns, LatestMetrics } from "./latest.ts";
import type { RecentSums } from "./recent-minutes.ts";
import { isBacklog } from "./weeks.ts";

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
  /** Commits the samples. Returns those that the store rejects as invalid. */
  append(samples: readonly AgentSample[]): Promise<ReadonlySet<AgentSample>>;
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
  /** Returns how many samples wait for their commit, by shard, except shards that do not respond. */
  waiting(): Promise<Map<number, number>>;
}

/** The new samples of several agents, and the cursors of their shards to continue from. */
export interface SelectionNews {
  places: Map<number, FeedCursor>;
  samples: AgentSample[];
  hasMore: boolean;
}

/** Time-out for one shard when all shards are called. */
const CALL_ALL_TIMEOUT_MS = 1_000;

export function createShardClient(namespace: DurableObjectNamespace<AgentShard>, count: number): ShardClient {
  const shardOf = (apId: string) => hash(apId) % count;
  // `idFromName` computes a hash, so the ids are cached.
  const ids = new Map<number, DurableObjectId>();
  const stubOf = (shard: number) => {
    const id = ids.get(shard) ?? namespace.idFromName(`shard-${shard}`);
    ids.set(shard, id);
    return namespace.get(id);
  };

  const batcherFor = (shard: number) =>
    new CallBatcher<SerializedSamples, readonly number[]>({
      component: COMPONENT,
      maxHoldMs: MAX_HOLD_MS,
      maxWeight: MAX_CALL_LENGTH,
      timeoutMs: TIMEOUT_MS,
      call: async (requests) => {
        const text = requests.map(({ text }) => text).join();
        const outcome = await callObject<AppendResult>(COMPONENT, stubOf(shard).append(text));
        if (outcome === "unavailable") throw new Unavailable(COMPONENT, new Error("The shard could not commit"));
        return indexesByRequest(requests, outcome === "committed" ? [] : outcome.rejected);
      },
    });
  // A call returns when all its samples are committed. Current samples must not wait for a backlog in the same call.
  const current = Array.from({ length: count }, (_, shard) => batcherFor(shard));
  const backlogs = Array.from({ length: count }, (_, shard) => batcherFor(shard));
  let inFlightLength = 0;

  const appendTo = async (
    batcher: CallBatcher<SerializedSamples, readonly number[]>,
    samples: readonly AgentSample[],
  ) => {
    const text = JSON.stringify(samples).slice(1, -1);
    if (inFlightLength + text.length > MAX_IN_FLIGHT_LENGTH)
      throw new Unavailable(COMPONENT, new Error("Too many samples are in flight"));
    inFlightLength += text.length;
    try {
      const rejected = await batcher.add({ text, count: samples.length }, text.length);
      return samples.filter((_, i) => rejected.includes(i));
    } finally {
      inFlightLength -= text.length;
    }
  };

  /** Calls every shard. Returns the results, except of shards that fail or do not respond. */
  const callAll = async <T>(call: (shard: DurableObjectStub<AgentShard>) => Promise<T>): Promise<Map<number, T>> => {
    const results = new Map<number, T>();
    const calls = Array.from({ length: count }, async (_, shard) => {
      try {
        results.set(shard, await withDeadline(CALL_ALL_TIMEOUT_MS, async () => await call(stubOf(shard))));
      } catch (error) {
        log.warn("shard call failed", { shard, error: describeError(error) });
      }
    });
    await Promise.all(calls);
    return results;
  };

  return {
    async append(samples) {
      const nowMs = Date.now();
      const byBatcher = Map.groupBy(samples, (sample) =>
        (isBacklog(sample, nowMs) ? backlogs : current).at(shardOf(sample.apId)),
      );
      const rejected = await Promise.all(
        [...byBatcher].map(async ([batcher, group]) => (batcher === undefined ? [] : await appendTo(batcher, group))),
      );
      return new Set(rejected.flat());
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
      const results = await callAll<RecentSums>((shard) => shard.recentMinutes([...metrics], fromMs));
      return results.size === count ? [...results.values()] : undefined;
    },

    async waiting() {
      return await callAll<number>((shard) => shard.waiting());
    },
  };
}

/** Samples of one request: their JSON, separated by commas, and their number. */
interface SerializedSamples {
  text: string;
  count: number;
}

/** Converts indexes into all samples of a call to indexes into the samples of each request. */
function indexesByRequest(requests: readonly SerializedSamples[], rejected: readonly number[]): number[][] {
  let start = 0;
  return requests.map(({ count }) => {
    const first = start;
    start += count;
    return rejected.filter((i) => i >= first && i < first + count).map((i) => i - first);
  });
}

/** Returns the FNV-1a hash: cheap, and uniform enough to distribute names. */
function hash(text: string): number {
  let state = 0x811c9dc5;
  for (let i = 0; i < text.length; i++) state = Math.imul(state ^ text.charCodeAt(i), 0x01000193);
  return state >>> 0;
}
