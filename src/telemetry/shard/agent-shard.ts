import { DurableObject } from "cloudflare:workers";
import { ClickHouseError } from "@clickhouse/client-web";
import { parseEnv } from "../../env.ts";
import { Unavailable } from "../../lib/errors.ts";
import { describeError, log } from "../../lib/log.ts";
import { series } from "../../monitoring/catalog.ts";
import { ledgerOf } from "../../monitoring/ledger.ts";
import { MetricRecorder } from "../../monitoring/recorder.ts";
import { createClickHouse, isRefused } from "../../storage/clickhouse.ts";
import { MAX_AHEAD_MS } from "../samples.ts";
import { MAX_POINTS } from "../store/series-queries.ts";
import { type AgentSample, createTelemetryStore, type TelemetryStore } from "../store/telemetry-store.ts";
import { ChangeFeed, type ChangeFeedPage, type FeedCursor, type SelectionPage } from "./change-feed.ts";
import { Deduplicator } from "./deduplicator.ts";
import { GroupCommit, type RejectedItem } from "./group-commit.ts";
import { LatestCache, type LatestColumns } from "./latest.ts";
import { LiveWindow } from "./live-window.ts";
import { RecentMinutes, type RecentSums } from "./recent-minutes.ts";
import { laneOf } from "./weeks.ts";

/**
 * The outcome of an append. `rejected` holds the indexes of the samples that the store rejects as invalid; the others are committed.
 * It is a value because an exception loses its class on its way out of a Durable Object.
 */
export type AppendResult = "committed" | "unavailable" | { rejected: number[] };

const BATCHES = series("controller_ingest_batches_total");
const COMMITTED = series("controller_ingest_samples_total", "committed");
const REFUSED = series("controller_ingest_samples_total", "refused");

const now = (): number => Date.now();

const MEGABYTE = 1024 * 1024;
/** Samples of several agents in one response. The caller holds the responses of all shards in memory. */
const MAX_NEWS = 1_000;
/** Points that the live window loads for one agent: 16 bytes each. */
const MAX_LOADED_POINTS = 200_000;

/**
 * Handles the current telemetry of the agents that hash to it. Commits the samples of many requests in one insert, keeps the live window
 * of watched agents in memory, and feeds live streams.
 */
export class AgentShard extends DurableObject<Env> {
  readonly #store: TelemetryStore;
  readonly #deduplicator: Deduplicator;
  readonly #groupCommit: GroupCommit<AgentSample>;
  readonly #liveWindow: LiveWindow;
  readonly #changeFeed = new ChangeFeed({
    maxSamples: 1_000,
    maxLength: 4 * MEGABYTE,
    maxTotalLength: 16 * MEGABYTE,
    maxFollowed: 10_000,
    followedMs: 60_000,
    now,
  });
  readonly #latest = new LatestCache({ spanMs: 300_000, maxAgents: 100_000, now });
  readonly #recentMinutes = new RecentMinutes({
    minutes: 3,
    maxAheadMs: MAX_AHEAD_MS,
    maxBytes: 16 * MEGABYTE,
    now,
  });
  readonly #recorder: MetricRecorder;
  readonly #windowMs: number;
  /** Agents whose live window is being loaded from the store. */
  readonly #loading = new Map<string, Promise<void>>();

  constructor(ctx: DurableObjectState, env: Env) {
    super(ctx, env);
    const config = parseEnv(env);
    this.#store = createTelemetryStore(createClickHouse(config));
    this.#deduplicator = new Deduplicator(this.#store);
    this.#groupCommit = new GroupCommit({
      select: (samples) => this.#deduplicator.newSamples(samples),
      commit: (samples, token) => this.#commit(samples, token),
      isRefused,
      laneOf: (sample) => laneOf(sample, Date.now()),
      gatherMs: config.COMMIT_GATHER_MS,
      maxBatch: 5_000,
      maxBatchLength: 4 * MEGABYTE,
      maxWaiting: 50_000,
      // In characters of JSON. Parsed, the samples take several times that, and a Durable Object has 128 MB.
      maxWaitingLength: 16 * MEGABYTE,
      now,
    });
    this.#recorder = new MetricRecorder({ ledger: ledgerOf(env.LEDGER), now });
    this.#windowMs = config.LIVE_WINDOW_MINUTES * 60_000;
    this.#liveWindow = new LiveWindow({
      spanMs: this.#windowMs,
      maxBytes: config.LIVE_WINDOW_MEGABYTES * MEGABYTE,
      now,
    });
  }

  /**
   * Commits samples.
   * @param text the samples as JSON, separated by commas: cheaper than the platform's serialisation of objects
   */
  async append(text: string): Promise<AppendResult> {
    const samples = JSON.parse(`[${text}]`) as AgentSample[];
    try {
      const rejected = await this.#groupCommit.add(samples, text.length);
      return rejected.length === 0 ? "committed" : this.#reportRejected(samples, rejected);
    } catch (error) {
      if (!(error instanceof Unavailable)) throw error;
      this.#recorder.add(REFUSED, samples.length);
      this.#recorder.flushIfDue();
      log.warn("samples not committed", { samples: samples.length, error: describeError(error) });
      return "unavailable";
    }
  }

  /** Counts and logs the rejected samples. Returns their indexes. */
  #reportRejected(samples: readonly AgentSample[], rejected: readonly RejectedItem<AgentSample>[]): AppendResult {
    const [first] = rejected;
    this.#recorder.add(REFUSED, rejected.length);
    this.#recorder.flushIfDue();
    // The store's message may quote what the agent sent; logs must not.
    const error = first?.error instanceof ClickHouseError ? first.error.type : describeError(first?.error);
    log.error("samples rejected by the store", { samples: rejected.length, ap_id: first?.item.apId, error });
    return { rejected: rejected.map(({ item }) => samples.indexOf(item)) };
  }

  async #commit(samples: readonly AgentSample[], token: string): Promise<void> {
    try {
      await this.#store.insert(samples, token);
    } catch (error) {
      // The store may have committed the samples anyway. Forget the agents, so that their state is read from the store.
      this.#deduplicator.forget(samples);
      this.#recentMinutes.forget(samples);
      for (const { apId } of samples) this.#liveWindow.forget(apId);
      throw error;
    }
    this.#recorder.add(BATCHES);
    this.#recorder.add(COMMITTED, samples.length);
    this.#recorder.flushIfDue();
    this.#deduplicator.committed(samples);
    for (const sample of samples) this.#liveWindow.add(sample.apId, sample);
    this.#changeFeed.add(samples);
    this.#latest.add(samples);
    this.#recentMinutes.add(samples);
  }

  /** Flushes the shard's metrics. Returns how many samples wait for their commit. */
  async waiting(): Promise<number> {
    await this.#recorder.flush();
    return this.#groupCommit.waiting;
  }

  /** Returns the latest values of all agents of the shard. */
  latest(): LatestColumns {
    return this.#latest.read();
  }

  /** Returns the sums of some metrics in the last minutes, of all agents of the shard. */
  recentMinutes(metrics: string[], fromMs: number): RecentSums {
    return this.#recentMinutes.read(metrics, fromMs);
  }

  /** Returns the agent's samples that were committed after a cursor. Waits up to `waitMs` if there are none. */
  async news(apId: string, cursor: FeedCursor | undefined, waitMs: number): Promise<ChangeFeedPage> {
    return await this.#changeFeed.since(apId, cursor, waitMs);
  }

  /** Returns the samples of several agents that were committed after a cursor, one page of them. */
  newsOfMany(apIds: string[], cursor: FeedCursor | undefined): SelectionPage {
    return this.#changeFeed.sinceMany(apIds, cursor, MAX_NEWS);
  }

  /**
   * Returns points from memory, one JSON text for each metric. Returns `undefined` if memory does not have all of them or they are too
   * many; the caller then reads the store.
   */
  async read(apId: string, metrics: string[], range: { fromMs: number; toMs: number }): Promise<string[] | undefined> {
    if (range.fromMs < Date.now() - this.#windowMs) return undefined;
    if (!this.#liveWindow.has(apId) || this.#loading.has(apId)) {
      const loading = this.#loading.get(apId) ?? this.#loadWindow(apId);
      this.#loading.set(apId, loading);
      await loading.finally(() => this.#loading.delete(apId));
    }
    return this.#liveWindow.read(apId, metrics, range, MAX_POINTS);
  }

  async #loadWindow(apId: string): Promise<void> {
    this.#liveWindow.watch(apId);
    try {
      const points = await this.#store.recent(apId, Date.now() - this.#windowMs, MAX_LOADED_POINTS);
      if (points === undefined) this.#liveWindow.forget(apId);
      else this.#liveWindow.fill(apId, points);
    } catch (error) {
      this.#liveWindow.forget(apId);
      log.warn("live window load failed", { error: describeError(error) });
    }
  }
}
