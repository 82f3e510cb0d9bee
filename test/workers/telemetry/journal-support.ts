import { env, evictDurableObject, runInDurableObject } from "cloudflare:test";
import { parseEnv } from "../../../src/env.ts";
import { Unavailable } from "../../../src/lib/errors.ts";
import type { AgentShard } from "../../../src/telemetry/shard/agent-shard.ts";
import { Deduplicator } from "../../../src/telemetry/shard/deduplicator.ts";
import { Flusher, type FlusherOptions } from "../../../src/telemetry/shard/flusher.ts";
import { Journal, type JournalOptions } from "../../../src/telemetry/shard/journal.ts";
import { createPlacement, shardName } from "../../../src/telemetry/shard/placement.ts";
import type { AgentSample } from "../../../src/telemetry/store/telemetry-store.ts";
import { uniqueName } from "../support.ts";

export const outage = () => new Unavailable("store", new Error("outage"));

export const sampleOf = (apId: string, tsMs: number, metrics: Record<string, number> = { m: 1 }): AgentSample => ({
  apId,
  tsMs,
  metrics,
  texts: {},
});

export const textOf = (samples: readonly AgentSample[]): string => JSON.stringify(samples).slice(1, -1);

const LIMITS = { maxLength: 10_000, maxRowLength: 1_000, maxCachedLength: 2_000 };

export interface JournalTest {
  storage: DurableObjectStorage;
  /** Opens the journal, as a restarted shard does. */
  open(options?: Partial<JournalOptions>): Journal;
}

/** Runs a test with the storage of a Durable Object that has no journal yet. */
export const withJournal = <T>(test: (context: JournalTest) => Promise<T> | T): Promise<T> =>
  runInDurableObject(env.LEDGER.get(env.LEDGER.idFromName(uniqueName())), (_, { storage }) =>
    test({ storage, open: (options) => new Journal({ storage, ...LIMITS, ...options }) }),
  );

/** Returns the shard of an agent. */
export const shardObject = (apId: string) =>
  env.AGENT_SHARD.get(env.AGENT_SHARD.idFromName(shardName(createPlacement(parseEnv(env)).shardOf(apId))));

/** Stops the shard at once, as if its process was killed. An eviction would wait for the calls of live streams of other tests. */
export const killShard = async (apId: string) =>
  await runInDurableObject(shardObject(apId), (_, state) => state.abort("killed by the test")).catch(() => {});

/** Returns a shard whose journal is full. What fills it is not inserted into the store. */
export async function fullShard(): Promise<DurableObjectStub<AgentShard>> {
  const shard = env.AGENT_SHARD.get(env.AGENT_SHARD.idFromName(uniqueName()));
  const text = JSON.stringify({ ...sampleOf(uniqueName(), Date.now()), filler: "x".repeat(1_000_000) });
  await runInDurableObject(shard, (_, { storage }) => {
    for (let seq = 1; seq <= 68; seq++) storage.sql.exec("INSERT INTO journal (seq, samples) VALUES (?, ?)", seq, text);
  });
  await evictDurableObject(shard);
  return shard;
}

export const append = (journal: Journal, ...samples: AgentSample[]) => journal.append(textOf(samples), samples);

/** Remembers the inserts, as the telemetry store does: an insert with a token that it has already got changes nothing. */
export class RecordedStore {
  readonly inserts: { token: string; samples: readonly AgentSample[] }[] = [];
  readonly #tokens = new Set<string>();
  readonly stored: AgentSample[] = [];
  /** Called before each insert. It may throw. */
  before: (samples: readonly AgentSample[]) => void = () => {};
  /** Called after each insert. It may throw: then the outcome is unknown. */
  after: (samples: readonly AgentSample[]) => void = () => {};

  async insert(samples: readonly AgentSample[], token: string): Promise<void> {
    this.inserts.push({ token, samples });
    this.before(samples);
    if (!this.#tokens.has(token)) this.stored.push(...samples);
    this.#tokens.add(token);
    this.after(samples);
  }

  /** Returns the keys and values of the stored numbers. */
  get values(): string[] {
    return this.stored
      .flatMap(({ apId, tsMs, metrics }) =>
        Object.entries(metrics).map(([metric, value]) => `${apId} ${tsMs} ${metric} ${value}`),
      )
      .toSorted();
  }
}

/** Flushes at once, and reports nothing. */
export const FLUSHER_DEFAULTS = {
  sync: async () => {},
  describe: String,
  onDecided: () => {},
  onStored: () => {},
  onInvalid: () => {},
  flushMs: 1,
  minFlushMs: 1,
  maxSamples: 100,
  maxLength: 5_000,
  now: Date.now,
};

export function flusherOf(journal: Journal, store: RecordedStore, options: Partial<FlusherOptions> = {}): Flusher {
  return new Flusher({
    journal,
    deduplicator: new Deduplicator({
      store: {
        newestSamples: async (apIds) =>
          new Map(
            apIds.flatMap((apId) => {
              const times = store.stored.filter((sample) => sample.apId === apId).map(({ tsMs }) => tsMs);
              return times.length === 0 ? [] : [[apId, Math.max(...times)]];
            }),
          ),
        stored: async (samples) =>
          store.stored
            .filter(({ apId, tsMs }) => samples.some((sample) => sample.apId === apId && sample.tsMs === tsMs))
            .flatMap(({ apId, tsMs, metrics }) => Object.keys(metrics).map((metric) => ({ apId, tsMs, metric }))),
      },
      isPending: (apId) => journal.has(apId),
    }),
    insert: (samples, token) => store.insert(samples, token),
    ...FLUSHER_DEFAULTS,
    ...options,
  });
}
