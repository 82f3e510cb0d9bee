import { withDeadline } from "../deadline.ts";
import { reachObject } from "../durable-objects.ts";
import { Unavailable } from "../errors.ts";
import { describeError, log } from "../log.ts";
import type { AgentShard } from "./agent-shard.ts";
import type { Figures, LatestColumns } from "./latest.ts";
import type { NewsAnswer, Place } from "./news.ts";
import type { SeriesQuery } from "./series-queries.ts";
import { SharedCalls } from "./shared-calls.ts";
import type { AgentSample } from "./store.ts";

const PART = "telemetry store";
/** Next to the insert that follows, nothing. */
const GATHER_MS = 5;
/** In characters. The platform takes 32 MiB in one call. */
const MAX_TOGETHER = 4 * 1024 * 1024;
/** The store has its own patience, and a little less of it. */
const PATIENCE_MS = 40_000;

/** The way to an agent's shard: agents are spread over a few objects by their names. */
export interface Shards {
  /** Returns when the samples have been committed. */
  append(samples: readonly AgentSample[]): Promise<void>;
  /** Recent points out of memory, one text of JSON for each metric; nothing where they are not all there, or are too many. */
  read(query: SeriesQuery & { metrics: readonly string[] }): Promise<string[] | undefined>;
  /** What was committed of an agent after a place; waits for so long at the most where nothing was. */
  news(apId: string, place: Place | undefined, waitMs: number): Promise<NewsAnswer>;
  /** The latest values of all agents, but for those of a shard that does not answer. */
  latest(): Promise<Map<string, Figures>>;
  /** How many samples wait for their commit, by shard, but for shards that do not answer. */
  waiting(): Promise<Map<number, number>>;
}

/** What is waited for one of all shards at the most. */
const EACH_MS = 1_000;

export function createShards(namespace: DurableObjectNamespace<AgentShard>, count: number): Shards {
  const shardOf = (apId: string) => hash(apId) % count;
  // The id is made out of the name once: that takes a hash.
  const ids = new Map<number, DurableObjectId>();
  const byNumber = (shard: number) => {
    const id = ids.get(shard) ?? namespace.idFromName(`shard-${shard}`);
    ids.set(shard, id);
    return namespace.get(id);
  };

  const appends = Array.from(
    { length: count },
    (_, shard) =>
      new SharedCalls<string>({
        part: PART,
        gatherMs: GATHER_MS,
        maxWeight: MAX_TOGETHER,
        patienceMs: PATIENCE_MS,
        call: async (texts) => {
          const outcome = await reachObject(PART, byNumber(shard).append(texts.join()));
          if (outcome !== "committed") throw new Unavailable(PART, new Error("A shard could not commit"));
        },
      }),
  );

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
      const byShard = Map.groupBy(samples, ({ apId }) => shardOf(apId));
      await Promise.all(
        [...byShard].map(async ([shard, its]) => {
          const text = JSON.stringify(its).slice(1, -1);
          await appends[shard]?.add(text, text.length);
        }),
      );
    },

    async read({ apId, metrics, fromMs, toMs }) {
      return await reachObject(PART, byNumber(shardOf(apId)).read(apId, [...metrics], { fromMs, toMs }));
    },

    async news(apId, place, waitMs) {
      return await reachObject(PART, byNumber(shardOf(apId)).news(apId, place, waitMs));
    },

    async latest() {
      const answers = await ofEach<LatestColumns>((shard) => shard.latest());
      const figures = new Map<string, Figures>();
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

/** FNV-1a: cheap, and even enough to spread names. */
function hash(text: string): number {
  let state = 0x811c9dc5;
  for (let i = 0; i < text.length; i++) state = Math.imul(state ^ text.charCodeAt(i), 0x01000193);
  return state >>> 0;
}
