import { DurableObject } from "cloudflare:workers";
import { parseEnv } from "../../env.ts";
import { NOTIFIER_NAME } from "../../events/event-log.ts";
import { Batch } from "../../lib/batch.ts";
import { Unavailable } from "../../lib/errors.ts";
import { describeError, log } from "../../lib/log.ts";
import { series } from "../../monitoring/catalog.ts";
import { ledgerOf } from "../../monitoring/ledger.ts";
import { MetricRecorder } from "../../monitoring/recorder.ts";
import { createClickHouse } from "../../storage/clickhouse.ts";
import { describeStoreError } from "../../storage/clickhouse-errors.ts";
import { countValues, MAX_AHEAD_MS } from "../samples.ts";
import { MAX_POINTS } from "../store/series-queries.ts";
import { type AgentSample, createTelemetryStore, type TelemetryStore } from "../store/telemetry-store.ts";
import { openShardAlerting } from "./alerting/open.ts";
import type { ShardAlerting } from "./alerting/shard-alerting.ts";
import { ChangeFeed, type ChangeFeedPage, type FeedCursor, type SelectionPage } from "./change-feed.ts";
import { Deduplicator } from "./deduplicator.ts";
import { Flusher } from "./flusher.ts";
import { Journal, type JournalRow, parseSamples, type SerializedSamples } from "./journal.ts";
import { LatestCache, type LatestColumns } from "./latest.ts";
import { LiveWindow } from "./live-window.ts";
import { PendingReads, type PendingSamples } from "./pending-reads.ts";
import { type ReceiptColumns, Receipts, type SourceReceipt } from "./receipts.ts";
import { RecentMinutes, type RecentSums } from "./recent-minutes.ts";

/** The outcome of an append. It is a value because an exception loses its class on its way out of a Durable Object. */
export type AppendResult = "committed" | "unavailable";

const BATCHES = series("controller_ingest_batches_total");
const COMMITTED = series("controller_ingest_samples_total", "committed");
const REFUSED = series("controller_ingest_samples_total", "refused");
const QUARANTINED = series("controller_ingest_samples_total", "quarantined");

const now = (): number => Date.now();
const MEGABYTE = 1024 * 1024;
/** Samples of several agents in one response. The caller holds the responses of all shards in memory. */
const MAX_NEWS = 1_000;
/** Points that the live window loads for one agent: 16 bytes each. */
const MAX_LOADED_POINTS = 200_000;
/** Characters in one row of the journal: at most 1 MB in UTF-8. The platform's limit is 2 MB. */
const MAX_ROW_LENGTH = 330_000;
/** The longest time without an alarm while the journal has samples. Alarms wake an object that was stopped. */
const ALARM_INTERVAL_MS = 10_000;
const MAX_AGENTS = 100_000;

/**
 * Handles the current telemetry of the agents that hash to it. Stores the samples of many requests in its journal, writes the journal to
 * the store in large inserts, keeps the live window of watched agents in memory, and feeds live streams.
 */
export class AgentShard extends DurableObject<Env> {
  readonly #store: TelemetryStore;
  readonly #alerting: ShardAlerting;
  readonly #journal: Journal;
  readonly #deduplicator: Deduplicator;
  readonly #flusher: Flusher;
  readonly #pendingReads: PendingReads;
  readonly #liveWindow: LiveWindow;
  readonly #changeFeed = new ChangeFeed({
    maxSamples: 1_000,
    maxLength: 4 * MEGABYTE,
    maxTotalLength: 16 * MEGABYTE,
    maxFollowed: 10_000,
    followedMs: 60_000,
    now,
  });
  readonly #latest = new LatestCache({ spanMs: 300_000, maxAgents: MAX_AGENTS, now });
  readonly #recentMinutes = new RecentMinutes({
    minutes: 3,
    maxAheadMs: MAX_AHEAD_MS,
    maxBytes: 16 * MEGABYTE,
    now,
  });
  readonly #receipts = new Receipts({ maxAgents: MAX_AGENTS, now });
  /** Samples that the change feed and the recent minutes do not have: row of the journal → indexes. It is not known yet whether they are new. */
  readonly #unannounced = new Map<number, number[]>();
  readonly #recorder: MetricRecorder;
  readonly #windowMs: number;
  readonly #gatherMs: number;
  #gathering: { batch: Batch<SerializedSamples>; written: Promise<void> } | undefined;
  #alarmMs = 0;
  /** Agents whose live window is being loaded from the store. */
  readonly #loading = new Map<string, Promise<void>>();

  constructor(ctx: DurableObjectState, env: Env) {
    super(ctx, env);
    const config = parseEnv(env);
    this.#store = createTelemetryStore(createClickHouse(config));
    const limits = { maxLength: 64 * MEGABYTE, maxRowLength: MAX_ROW_LENGTH, maxCachedLength: 8 * MEGABYTE };
    this.#alerting = openShardAlerting({
      config,
      state: ctx,
      telemetry: this.#store,
      idOf: (name) => env.AGENT_SHARD.idFromName(name),
      openJournal: (onRewrite) => new Journal({ storage: ctx.storage, ...limits, isReplayed: true, onRewrite }),
      wakeNotifier: () => env.NOTIFIER.getByName(NOTIFIER_NAME).wake(),
      onDueChanged: () => this.#setAlarm(),
      now,
    });
    this.#journal = this.#alerting.journal;
    this.#deduplicator = new Deduplicator({ store: this.#store, isPending: (apId) => this.#journal.has(apId) });
    this.#flusher = new Flusher({
      journal: this.#journal,
      deduplicator: this.#deduplicator,
      sync: () => ctx.storage.sync(),
      insert: (samples, token) => this.#store.insert(samples, token),
      onDecided: (rows) => this.#announceDecided(rows),
      onStored: (samples) => this.#countStored(samples.length),
      onInvalid: (samples, error) => this.#quarantine(samples, error),
      describe: describeStoreError,
      flushMs: config.FLUSH_INTERVAL_MS,
      minFlushMs: config.FLUSH_INTERVAL_MS / 2,
      maxSamples: 5_000,
      maxLength: 4 * MEGABYTE,
      now,
    });
    this.#pendingReads = new PendingReads({ journal: this.#journal, drain: () => this.flush() });
    this.#recorder = new MetricRecorder({ ledger: ledgerOf(env.LEDGER), now });
    this.#gatherMs = config.COMMIT_GATHER_MS;
    this.#windowMs = config.LIVE_WINDOW_MINUTES * 60_000;
    this.#liveWindow = new LiveWindow({
      spanMs: this.#windowMs,
      maxBytes: config.LIVE_WINDOW_MEGABYTES * MEGABYTE,
      now,
    });
    // After a restart, the journal has what the object before it could not write.
    for (const row of this.#journal.rows()) this.#receive(row);
    this.#flusher.start();
  }

  /**
   * Stores samples in the journal.
   * @param text the samples as JSON, separated by commas: cheaper than the platform's serialisation of objects
   */
  async append(text: string): Promise<AppendResult> {
    const samples = parseSamples(text);
    try {
      if (!this.#journal.hasRoomFor(text.length + (this.#gathering?.batch.weight ?? 0)))
        throw new Unavailable("telemetry store", new Error("The journal is full"));
      await this.#gather({ text, samples });
      return "committed";
    } catch (error) {
      this.#recorder.add(REFUSED, samples.length);
      this.#recorder.flushIfDue();
      log.warn("samples not committed", { samples: samples.length, error: describeError(error) });
      return "unavailable";
    }
  }

  /** Continues to write the journal after the object was stopped, and evaluates what depends on time. */
  override async alarm(): Promise<void> {
    this.#alarmMs = 0;
    if (!this.#journal.isEmpty) this.#flusher.start();
    await this.#alerting.alarm();
    await this.#setAlarm();
  }

  /** Loads the alert rules: one has changed. */
  async refreshRules(): Promise<void> {
    await this.#alerting.refresh();
  }

  /** Writes the samples of all calls of a short time in one row. */
  async #gather(samples: SerializedSamples): Promise<void> {
    if (this.#gatherMs === 0) {
      await this.#write([samples]);
      return;
    }
    if (!this.#gathering?.batch.add([samples], samples.text.length)) {
      const batch = new Batch<SerializedSamples>({ gatherMs: this.#gatherMs, maxWeight: MAX_ROW_LENGTH });
      batch.add([samples], samples.text.length);
      const written = batch.due.then(async () => {
        if (this.#gathering?.batch === batch) this.#gathering = undefined;
        await this.#write(batch.items);
      });
      this.#gathering = { batch, written };
    }
    await this.#gathering.written;
  }

  async #write(calls: readonly SerializedSamples[]): Promise<void> {
    const text = calls.map((call) => call.text).join();
    const samples = calls.flatMap((call) => call.samples);
    for (const row of this.#alerting.append(text, samples)) this.#receive(row);
    this.#flusher.start();
    this.#alerting.afterAppend();
    await this.#setAlarm();
  }

  /** Sets the alarm, unless it is set for an earlier time. */
  async #setAlarm(): Promise<void> {
    const flushMs = this.#journal.isEmpty ? Number.POSITIVE_INFINITY : now() + ALARM_INTERVAL_MS;
    const dueMs = Math.min(flushMs, this.#alerting.dueMs);
    // An alarm that is due may wait for its turn. Setting it again would postpone it, perhaps with every report.
    const isSet = this.#alarmMs > now() - ALARM_INTERVAL_MS && this.#alarmMs <= dueMs;
    if (isSet || dueMs === Number.POSITIVE_INFINITY) return;
    this.#alarmMs = dueMs;
    this.#alerting.recordAlarm(dueMs);
    await this.ctx.storage.setAlarm(dueMs);
  }

  /** Makes a row of the journal visible to readers. */
  #receive({ seq, samples }: JournalRow): void {
    const newest: AgentSample[] = [];
    const others: number[] = [];
    for (const [i, sample] of samples.entries()) {
      if (countValues(sample) === 0) continue;
      if (this.#deduplicator.accept(sample)) newest.push(sample);
      else others.push(i);
    }
    this.#announce(newest);
    if (others.length > 0) this.#unannounced.set(seq, others);
    for (const sample of samples) this.#liveWindow.add(sample.apId, sample);
    this.#latest.add(samples);
    this.#receipts.add(samples);
  }

  #announce(samples: readonly AgentSample[]): void {
    this.#changeFeed.add(samples);
    this.#recentMinutes.add(samples);
  }

  /** Announces the new values of samples that were not announced when they arrived. */
  #announceDecided(rows: readonly JournalRow[]): void {
    for (const { seq, samples } of rows) {
      this.#announce(this.#unannounced.get(seq)?.flatMap((i) => samples[i] ?? []) ?? []);
      this.#unannounced.delete(seq);
    }
  }

  #countStored(samples: number): void {
    this.#recorder.add(BATCHES);
    this.#recorder.add(COMMITTED, samples);
    this.#recorder.flushIfDue();
  }

  /** Counts and logs samples that the store rejects. */
  #quarantine(samples: readonly AgentSample[], error: unknown): void {
    this.#recorder.add(QUARANTINED, samples.length);
    this.#recorder.flushIfDue();
    const [first] = samples;
    log.error("samples rejected by the store", {
      samples: samples.length,
      ap_id: first?.apId,
      error: describeStoreError(error),
    });
  }

  /** Flushes the shard's metrics. Returns how many samples are in the journal. */
  async waiting(): Promise<number> {
    await this.#recorder.flush();
    return this.#journal.count;
  }

  /** Returns the agent's samples in a range of time that may not be in the store yet. */
  async pending(apId: string, fromMs: number, toMs: number): Promise<PendingSamples> {
    const found = await this.#pendingReads.ofAgent(apId, { fromMs, toMs });
    return { ...found, isStoreDown: this.#flusher.isStalled };
  }

  /** Like `pending`, for several agents. */
  async pendingOfMany(apIds: string[], fromMs: number, toMs: number): Promise<PendingSamples> {
    const found = await this.#pendingReads.ofMany(apIds, { fromMs, toMs });
    return { ...found, isStoreDown: this.#flusher.isStalled };
  }

  /** Returns when the shard last received something from agents, as far as it knows. Default: from all agents. */
  received(apIds?: string[]): ReceiptColumns {
    return this.#receipts.read(apIds);
  }

  /** Returns the sources of an agent's samples, the latest first, as far as the shard knows. */
  sources(apId: string): SourceReceipt[] {
    return this.#receipts.sources(apId);
  }

  /** Returns the latest values of all agents of the shard. */
  latest(): LatestColumns {
    return this.#latest.read();
  }

  /**
   * Returns the sums of some metrics in the last minutes, of all agents of the shard. First writes to the store what neither the store nor
   * the sums have.
   */
  async recentMinutes(metrics: string[], fromMs: number): Promise<RecentSums> {
    if (this.#unannounced.size > 0 || this.#journal.oldestMs < this.#recentMinutes.completeFromMs) await this.flush();
    return this.#recentMinutes.read(metrics, fromMs);
  }

  /** Returns the agent's samples that were announced after a cursor. Waits up to `waitMs` if there are none. */
  async news(apId: string, cursor: FeedCursor | undefined, waitMs: number): Promise<ChangeFeedPage> {
    // The reader may not return, so it must get all samples that were accepted.
    if (waitMs <= 0 && cursor !== undefined && this.#hasUnannounced(apId)) await this.flush();
    return await this.#changeFeed.since(apId, cursor, waitMs);
  }

  #hasUnannounced(apId: string): boolean {
    for (const [seq, indexes] of this.#unannounced) {
      const samples = this.#journal.read(seq);
      if (indexes.some((i) => samples[i]?.apId === apId)) return true;
    }
    return false;
  }

  /** Writes the journal to the store. Returns false if the store does not respond. */
  async flush(): Promise<boolean> {
    try {
      await this.#flusher.drain();
      return true;
    } catch (error) {
      if (!(error instanceof Unavailable)) throw error;
      return false;
    }
  }

  /** Returns the samples of several agents that were announced after a cursor, one page of them. */
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
      if (this.#flusher.isStalled) return undefined;
      const loading = this.#loading.get(apId) ?? this.#loadWindow(apId);
      this.#loading.set(apId, loading);
      await loading.finally(() => this.#loading.delete(apId));
    }
    return this.#liveWindow.read(apId, metrics, range, MAX_POINTS);
  }

  async #loadWindow(apId: string): Promise<void> {
    this.#liveWindow.watch(apId);
    for (const sample of this.#journal.samplesOf(apId)) this.#liveWindow.add(apId, sample);
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
