import { withDeadline } from "../../lib/deadline.ts";
import { Unavailable } from "../../lib/errors.ts";
import { describeError, log } from "../../lib/log.ts";
import { callObject } from "../../storage/durable-objects.ts";
import type { SeriesQuery } from "../store/series-queries.ts";
import type { AgentSample } from "../store/telemetry-store.ts";
import type { AgentShard, Appended } from "./agent-shard.ts";
import { CallBatcher } from "./call-batcher.ts";
import type { ChangeFeedPage, FeedCursor } from "./change-feed.ts";
import type { LatestColumns, LatestMetrics } from "./latest.ts";
import { isBacklog } from "./weeks.ts";

const PART = "telemetry store";
/** Next to the insert that follows, nothing. */
const GATHER_MS = 5;
/** In characters. The platform takes 32 MiB in one call. */
const MAX_TOGETHER = 4 * 1024 * 1024;
/** In characters, of all calls that are under way: an isolate has 128 MB for everything. */
const MAX_WAITING = 32 * 1024 * 1024;
/** The store has its own patience, and a little less of it. */
const TIMEOUT_MS = 40_000;

/** The way to an agent's shard: agents are spread over a few objects by their names. */
export interface ShardClient {
  /** Returns when the samples have been committed, with those that the store rejects as wrong in themselves. */
  append(samples: readonly AgentSample[]): Promise<ReadonlySet<AgentSample>>;
  /** Recent points out of memory, one text of JSON for each metric; nothing where they are not all there, or are too many. */
  read(query: SeriesQuery & { metrics: readonly string[] }): Promise<string[] | undefined>;
  /** What was committed of an agent after a place; waits for so long at the most where nothing was. */
  news(apId: string, place: FeedCursor | undefined, waitMs: number): Promise<ChangeFeedPage>;
  /** The latest values of all agents, but for those of a shard that does not answer. */
  latest(): Promise<Map<string, LatestMetrics>>;
  /** How many samples wait for their commit, by shard, but for shards that do not answer. */
  waiting(): Promise<Map<number, number>>;
}

/** What is waited for one of all shards at the most. */
const EACH_MS = 1_000;

export function createShardClient(namespace: DurableObjectNamespace<AgentShard>, count: number): ShardClient {
  const shardOf = (apId: string) => hash(apId) % count;
  // The id is made out of the name once: that takes a hash.
  const ids = new Map<number, DurableObjectId>();
  const byNumber = (shard: number) => {
    const id = ids.get(shard) ?? namespace.idFromName(`shard-${shard}`);
    ids.set(shard, id);
    return namespace.get(id);
  };

  const callsTo = (shard: number) =>
    new CallBatcher<Appending, readonly number[]>({
      part: PART,
      gatherMs: GATHER_MS,
      maxWeight: MAX_TOGETHER,
      timeoutMs: TIMEOUT_MS,
      call: async (appending) => {
        const text = appending.map(({ text }) => text).join();
        const outcome = await callObject<Appended>(PART, byNumber(shard).append(text));
        if (outcome === "unavailable") throw new Unavailable(PART, new Error("A shard could not commit"));
        return spread(appending, outcome === "committed" ? [] : outcome.rejected);
      },
    });
  // A call returns when everything in it is committed: the present must not wait for a backlog that it shares a call with.
  const present = Array.from({ length: count }, (_, shard) => callsTo(shard));
  const backlogs = Array.from({ length: count }, (_, shard) => callsTo(shard));
  let waitingLength = 0;

  const appendTo = async (calls: CallBatcher<Appending, readonly number[]>, samples: readonly AgentSample[]) => {
    const text = JSON.stringify(samples).slice(1, -1);
    if (waitingLength + text.length > MAX_WAITING) throw new Unavailable(PART, new Error("Too much is under way"));
    waitingLength += text.length;
    try {
      const rejected = await calls.add({ text, count: samples.length }, text.length);
      return samples.filter((_, i) => rejected.includes(i));
    } finally {
      waitingLength -= text.length;
    }
  };

  /** What each shard says, but for those that do not answer. */
  const ofEach = async <T>(ask: (shard: DurableObjectStub<AgentShard>) => Promise<T>): Promise<Map<number, T>> => {
    const answers = new Map<number, T>();
    const asked = Array.from({ length: count }, async (_, shard) => {
      try {
        answers.set(shard, await withDeadline(EACH_MS, async () => await ask(byNumber(shard))));
      } catch (error) {
        log.warn("a shard does not answer", { shard, error: describeError(error) });
      }
    });
    await Promise.all(asked);
    return answers;
  };

  return {
    async append(samples) {
      const nowMs = Date.now();
      const byCalls = Map.groupBy(samples, (sample) =>
        (isBacklog(sample, nowMs) ? backlogs : present).at(shardOf(sample.apId)),
      );
      const rejected = await Promise.all(
        [...byCalls].map(async ([calls, its]) => (calls === undefined ? [] : await appendTo(calls, its))),
      );
      return new Set(rejected.flat());
    },

    async read({ apId, metrics, fromMs, toMs }) {
      return await callObject(PART, byNumber(shardOf(apId)).read(apId, [...metrics], { fromMs, toMs }));
    },

    async news(apId, place, waitMs) {
      return await callObject(PART, byNumber(shardOf(apId)).news(apId, place, waitMs));
    },

    async latest() {
      const answers = await ofEach<LatestColumns>((shard) => shard.latest());
      const figures = new Map<string, LatestMetrics>();
      for (const { apIds, load, quality, users } of answers.values()) {
        for (const [i, apId] of apIds.entries())
          figures.set(apId, { load: load[i] ?? null, quality: quality[i] ?? null, users: users[i] ?? null });
      }
      return figures;
    },

    async waiting() {
      return await ofEach<number>((shard) => shard.waiting());
    },
  };
}

/** Samples of one request, as members of an array in JSON. */
interface Appending {
  text: string;
  count: number;
}

/** The places of rejected samples among all that were sent, as places in what each request sent. */
function spread(appending: readonly Appending[], rejected: readonly number[]): number[][] {
  let start = 0;
  return appending.map(({ count }) => {
    const first = start;
    start += count;
    return rejected.filter((i) => i >= first && i < first + count).map((i) => i - first);
  });
}

/** FNV-1a: cheap, and even enough to spread names. */
function hash(text: string): number {
  let state = 0x811c9dc5;
  for (let i = 0; i < text.length; i++) state = Math.imul(state ^ text.charCodeAt(i), 0x01000193);
  return state >>> 0;
}
