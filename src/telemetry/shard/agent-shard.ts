import { DurableObject } from "cloudflare:workers";
import { ClickHouseError } from "@clickhouse/client-web";
import { parseEnv } from "../../env.ts";
import { Unavailable } from "../../lib/errors.ts";
import { describeError, log } from "../../lib/log.ts";
import { series } from "../../monitoring/catalog.ts";
import { ledgerOf } from "../../monitoring/ledger.ts";
import { MetricRecorder } from "../../monitoring/recorder.ts";
import { createClickHouse, isRefused } from "../../storage/clickhouse.ts";
import { MAX_POINTS } from "../store/series-queries.ts";
import { type AgentSample, createTelemetryStore, type TelemetryStore } from "../store/telemetry-store.ts";
import { ChangeFeed, type ChangeFeedPage, type FeedCursor } from "./change-feed.ts";
import { Deduplicator } from "./deduplicator.ts";
import { GroupCommit, type Rejected } from "./group-commit.ts";
import { LatestCache, type LatestColumns } from "./latest.ts";
import { LiveWindow } from "./live-window.ts";
import { laneOf } from "./weeks.ts";

/**
 * What became of samples; with `rejected`, the places of those that the store rejects as wrong in themselves, the others being
 * committed. Not an exception: those lose their kind on the way out of an object.
 */
export type Appended = "committed" | "unavailable" | { rejected: number[] };

const BATCHES = series("controller_ingest_batches_total");
const COMMITTED = series("controller_ingest_samples_total", "committed");
const REFUSED = series("controller_ingest_samples_total", "refused");

const MEGABYTE = 1024 * 1024;
/** Sixteen bytes each. */
const MAX_POINTS_OF_AGENT = 200_000;

/**
 * A few agents' present: their samples are committed here, those of many requests in one insert; the last minutes of those that
 * somebody watches are remembered, and live streams are told what comes.
 */
export class AgentShard extends DurableObject<Env> {
  readonly #store: TelemetryStore;
  readonly #novelty: Deduplicator;
  readonly #commits: GroupCommit<AgentSample>;
  readonly #window: LiveWindow;
  readonly #news = new ChangeFeed({
    ...{ maxSamples: 1_000, maxLength: 4 * MEGABYTE, maxTotalLength: 16 * MEGABYTE, maxFollowed: 10_000 },
    followedMs: 60_000,
    now: Date.now,
  });
  readonly #latest = new LatestCache({ spanMs: 300_000, maxAgents: 100_000, now: Date.now });
  readonly #recorder: MetricRecorder;
  readonly #spanMs: number;
  /** Agents whose past is on its way from the store. */
  readonly #filling = new Map<string, Promise<void>>();

  constructor(ctx: DurableObjectState, env: Env) {
    super(ctx, env);
    const config = parseEnv(env);
    this.#store = createTelemetryStore(createClickHouse(config));
    this.#novelty = new Deduplicator(this.#store);
    this.#commits = new GroupCommit({
      select: (samples) => this.#novelty.only(samples),
      commit: (samples, token) => this.#commit(samples, token),
      isRefused,
      laneOf: (sample) => laneOf(sample, Date.now()),
      gatherMs: config.COMMIT_GATHER_MS,
      maxBatch: 5_000,
      maxBatchLength: 4 * MEGABYTE,
      maxWaiting: 50_000,
      // As JSON; in memory it is several times that, and an object has 128 MB.
      maxWaitingLength: 16 * MEGABYTE,
      now: Date.now,
    });
    this.#recorder = new MetricRecorder({ ledger: ledgerOf(env.LEDGER), now: Date.now });
    this.#spanMs = config.LIVE_WINDOW_MINUTES * 60_000;
    this.#window = new LiveWindow({
      spanMs: this.#spanMs,
      maxBytes: config.LIVE_WINDOW_MEGABYTES * MEGABYTE,
      now: Date.now,
    });
  }

  /** Samples as the members of an array in JSON, which is cheaper than the platform's way of passing objects. */
  async append(text: string): Promise<Appended> {
    const samples = JSON.parse(`[${text}]`) as AgentSample[];
    try {
      const rejected = await this.#commits.add(samples, text.length);
      return rejected.length === 0 ? "committed" : this.#rejectedOf(samples, rejected);
    } catch (error) {
      if (!(error instanceof Unavailable)) throw error;
      this.#recorder.add(REFUSED, samples.length);
      this.#recorder.flushIfDue();
      log.warn("samples not committed", { samples: samples.length, error: describeError(error) });
      return "unavailable";
    }
  }

  #rejectedOf(samples: readonly AgentSample[], rejected: readonly Rejected<AgentSample>[]): Appended {
    const [first] = rejected;
    this.#recorder.add(REFUSED, rejected.length);
    this.#recorder.flushIfDue();
    // The message of the store may quote what the agent sent.
    const error = first?.error instanceof ClickHouseError ? first.error.type : describeError(first?.error);
    log.error("samples rejected by the store", { samples: rejected.length, ap_id: first?.item.apId, error });
    return { rejected: rejected.map(({ item }) => samples.indexOf(item)) };
  }

  async #commit(samples: readonly AgentSample[], token: string): Promise<void> {
    try {
      await this.#store.insert(samples, token);
    } catch (error) {
      // It may have been committed all the same: memory must not claim to know.
      this.#novelty.forget(samples);
      for (const { apId } of samples) this.#window.forget(apId);
      throw error;
    }
    this.#recorder.add(BATCHES);
    this.#recorder.add(COMMITTED, samples.length);
    this.#recorder.flushIfDue();
    this.#novelty.committed(samples);
    for (const sample of samples) this.#window.add(sample.apId, sample);
    this.#news.add(samples);
    this.#latest.add(samples);
  }

  /** How many samples wait for their commit; what was counted so far is handed over then. */
  async waiting(): Promise<number> {
    await this.#recorder.flush();
    return this.#commits.waiting;
  }

  /** The latest values of all its agents. */
  latest(): LatestColumns {
    return this.#latest.read();
  }

  /** What was committed of an agent after a place, for live streams; waits where nothing was. */
  async news(apId: string, place: FeedCursor | undefined, waitMs: number): Promise<ChangeFeedPage> {
    return await this.#news.since(apId, place, waitMs);
  }

  /**
   * Points out of memory, one text of JSON for each metric; nothing where they are not all there, or are too many, and the store has
   * to be asked.
   */
  async read(apId: string, metrics: string[], range: { fromMs: number; toMs: number }): Promise<string[] | undefined> {
    if (range.fromMs < Date.now() - this.#spanMs) return undefined;
    if (!this.#window.has(apId) || this.#filling.has(apId)) {
      const filling = this.#filling.get(apId) ?? this.#fill(apId);
      this.#filling.set(apId, filling);
      await filling.finally(() => this.#filling.delete(apId));
    }
    return this.#window.read(apId, metrics, range, MAX_POINTS);
  }

  async #fill(apId: string): Promise<void> {
    this.#window.watch(apId);
    try {
      const points = await this.#store.recent(apId, Date.now() - this.#spanMs, MAX_POINTS_OF_AGENT);
      if (points === undefined) this.#window.forget(apId);
      else this.#window.fill(apId, points);
    } catch (error) {
      this.#window.forget(apId);
      log.warn("live window not filled", { error: describeError(error) });
    }
  }
}
