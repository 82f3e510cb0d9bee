import type { EventSink } from "../../../alerts/event-sink.ts";
import type { WatchFeed } from "../../../alerts/watch-feed.ts";
import { Unavailable } from "../../../lib/errors.ts";
import { describeError, log } from "../../../lib/log.ts";
import type { AgentSample, TelemetryStore } from "../../store/telemetry-store.ts";
import { AlertEngine } from "../alert-engine.ts";
import type { Journal } from "../journal.ts";
import { hourStart } from "./baselines.ts";
import { EngineStore } from "./engine-store.ts";
import { Uploader } from "./uploader.ts";

export interface ShardAlertingOptions {
  storage: Pick<DurableObjectStorage, "sql" | "transactionSync">;
  sync(): Promise<void>;
  feed: WatchFeed;
  sink: EventSink;
  telemetry: Pick<TelemetryStore, "lastSeen" | "newestSamples" | "hourMeans">;
  /** Such as `shard-3`. */
  name: string;
  owns(apId: string): boolean;
  /** Called after events were uploaded. */
  onUploaded(): Promise<void>;
  /** Called when `dueMs` may have become earlier, except by `append` and `alarm`. */
  onDueChanged(): Promise<void>;
  now(): number;
}

/** How old rules and labels may be while reports arrive. */
const REFRESH_INTERVAL_MS = 5_000;
/** For a report of an agent that is not known. */
const MIN_REFRESH_MS = 1_000;
/** While no reports arrive. Services refresh the shards when a rule changes; this is for labels of agents that do not report. */
const IDLE_REFRESH_MS = 60_000;
/** Samples of this time are evaluated again after a restart. Shorter: more writes. */
const CHECKPOINT_INTERVAL_MS = 20_000;
/** An alarm that is later than this was missed: the service was down. */
const MAX_ALARM_DELAY_MS = 1_000;
/** After an outage of the service, agents get this time to report before they count as absent. */
const GRACE_MS = 10_000;
/** Ticks are not closer together than this. */
const MIN_TICK_MS = 250;
/** The longest time without an alarm while events wait. Alarms wake an object that was stopped. */
const UPLOAD_ALARM_MS = 10_000;
/** Loads the means of the next hour this early. */
const BASELINE_LEAD_MS = 10 * 60_000;

/** Connects the alert engine with the journal, with libSQL and with the telemetry store. */
export class ShardAlerting {
  readonly #options: ShardAlertingOptions;
  readonly #journal: Journal;
  readonly #store: EngineStore;
  readonly #engine: AlertEngine;
  readonly #uploader: Uploader;
  #refreshing: Promise<void> | undefined;
  #refreshedMs = Number.NEGATIVE_INFINITY;
  #checkpointMs: number;
  /** No ticks before this time. */
  #quietUntilMs = Number.NEGATIVE_INFINITY;

  constructor(options: ShardAlertingOptions, openJournal: (onRewrite: () => void) => Journal) {
    this.#options = options;
    const { storage, sync, sink, owns, now } = options;
    const onUploaded = async (): Promise<void> => {
      await Promise.all([options.onDueChanged(), options.onUploaded()]);
    };
    this.#store = new EngineStore(storage.sql);
    this.#journal = openJournal(() => this.#checkpoint());
    this.#engine = new AlertEngine({ store: this.#store, replay: () => this.#journal.replay(), owns, now });
    const epoch = this.#store.value("epoch") ?? crypto.randomUUID().slice(0, 8);
    this.#store.setValue("epoch", epoch);
    this.#uploader = new Uploader({
      store: this.#store,
      sink,
      name: `${options.name}/${epoch}`,
      sync,
      onUploaded,
      now,
    });
    const alarmMs = this.#store.time("alarm_ms") ?? Number.POSITIVE_INFINITY;
    if (alarmMs < now() - MAX_ALARM_DELAY_MS) this.#quietUntilMs = now() + GRACE_MS;
    this.#checkpointMs = now();
    this.#transaction(() => this.#engine.checkpoint());
    this.#journal.checkpoint();
    this.#uploader.start();
  }

  get journal(): Journal {
    return this.#journal;
  }

  /** Evaluates samples and stores them in the journal, in one transaction. Throws if the storage fails: nothing has changed then. */
  append(text: string, samples: AgentSample[]): ReturnType<Journal["append"]> {
    try {
      this.#engine.evaluate(samples);
      if (!this.#journal.fitsInRow(text)) this.#engine.touch(samples);
      return this.#journal.append(text, samples, () => this.#engine.write());
    } catch (error) {
      this.#engine.restore();
      throw error;
    }
  }

  /** Does what is due after an append, and returns without waiting for it. */
  afterAppend(): void {
    const { now } = this.#options;
    this.#uploader.start();
    if (now() - this.#checkpointMs >= CHECKPOINT_INTERVAL_MS) this.#checkpoint();
    const maxAgeMs = this.#engine.hasUnknown ? MIN_REFRESH_MS : REFRESH_INTERVAL_MS;
    if (now() - this.#refreshedMs >= maxAgeMs) void this.refresh();
  }

  /** Evaluates what depends on time, and uploads. */
  async alarm(): Promise<void> {
    const { now } = this.#options;
    if (now() >= this.#quietUntilMs) {
      this.#transaction(() => {
        this.#engine.tick(now());
        this.#engine.write();
      });
    }
    if (this.#engine.isDirty && now() - this.#checkpointMs >= CHECKPOINT_INTERVAL_MS) this.#checkpoint();
    this.#uploader.start();
    if (this.#engine.ruleCount > 0 && now() - this.#refreshedMs >= REFRESH_INTERVAL_MS) await this.refresh();
    await this.#uploader.releaseIfDue();
  }

  /** When `alarm` must be called. Infinity if only a report can change something. */
  get dueMs(): number {
    const { now } = this.#options;
    const refreshMs = this.#engine.ruleCount === 0 ? Number.POSITIVE_INFINITY : this.#refreshedMs + IDLE_REFRESH_MS;
    const tickMs = Math.max(this.#engine.dueMs, this.#quietUntilMs, now() + MIN_TICK_MS);
    const uploadMs = this.#store.outgoingCount > 0 ? now() + UPLOAD_ALARM_MS : Number.POSITIVE_INFINITY;
    return Math.min(tickMs, refreshMs, uploadMs, this.#uploader.releaseMs);
  }

  /** Remembers when the alarm is due, to notice after a start that it was missed. */
  recordAlarm(alarmMs: number): void {
    this.#store.setValue("alarm_ms", alarmMs);
  }

  /** Loads changed rules and agents, and what their evaluation needs. Never throws. */
  async refresh(): Promise<void> {
    const previous = this.#refreshing;
    // A refresh that has started already may have read too early for the caller.
    this.#refreshing = (previous ?? Promise.resolve()).then(() => this.#refresh());
    const current = this.#refreshing;
    await current;
    if (this.#refreshing === current) this.#refreshing = undefined;
  }

  async #refresh(): Promise<void> {
    const { feed, now } = this.#options;
    this.#refreshedMs = now();
    try {
      const mark = this.#store.value("mark");
      const changes = await feed.since(mark === undefined ? undefined : Number(mark), this.#engine.unknown());
      if (changes.rules !== undefined || changes.agents !== undefined) {
        this.#transaction(() => {
          this.#engine.apply(changes, (apId) => this.#journal.samplesOf(apId));
          this.#engine.write();
        });
        this.#journal.checkpoint();
      }
      if (changes.mark !== mark) this.#store.setValue("mark", changes.mark);
      await this.#loadUnseen();
      await this.#loadBaselines();
      this.#uploader.start();
      await this.#options.onDueChanged();
    } catch (error) {
      if (error instanceof Unavailable) log.warn("alert rules not refreshed", { error: describeError(error) });
      else log.error("bug", { error: describeError(error) });
    }
  }

  /** Finds out when agents reported before this shard existed, or was theirs. */
  async #loadUnseen(): Promise<void> {
    const unseen = this.#engine.unseen();
    if (unseen.length === 0) return;
    const { telemetry } = this.#options;
    const [received, newest] = [await telemetry.lastSeen(unseen), await telemetry.newestSamples(unseen)];
    this.#transaction(() => {
      for (const apId of unseen) {
        const [tsMs, receivedMs] = [newest.get(apId), received.get(apId)];
        const last = tsMs === undefined || receivedMs === undefined || tsMs <= 0 ? undefined : { tsMs, receivedMs };
        this.#engine.seed(apId, last);
      }
      this.#engine.write();
    });
  }

  async #loadBaselines(): Promise<void> {
    const { telemetry, now } = this.#options;
    const { baselines } = this.#engine;
    const hours = new Set([hourStart(now()), hourStart(now() + BASELINE_LEAD_MS)]);
    for (const { apIds, ...need } of this.#engine.baselineNeeds()) {
      for (const hourMs of hours) {
        if (baselines.has(need, hourMs)) continue;
        const means = await telemetry.hourMeans({ ...need, apIds, hourMs });
        this.#transaction(() => {
          this.#engine.checkpoint();
          this.#engine.baselines.set(need, hourMs, means);
          this.#engine.baselines.dropOld(now());
        });
        this.#journal.checkpoint();
      }
    }
  }

  #checkpoint(): void {
    this.#checkpointMs = this.#options.now();
    this.#transaction(() => this.#engine.checkpoint());
    this.#journal.checkpoint();
  }

  /** Runs changes of the engine and their writes. If the storage fails, the engine returns to what is stored. */
  #transaction(run: () => void): void {
    try {
      this.#options.storage.transactionSync(run);
    } catch (error) {
      this.#engine.restore();
      throw error;
    }
  }
}
