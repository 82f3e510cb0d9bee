import type { EventSink } from "../../../alerts/event-sink.ts";
import { describeError, log } from "../../../lib/log.ts";
import { isRejected } from "../../../storage/libsql.ts";
import type { EngineStore, OutgoingRow } from "./engine-store.ts";

export interface UploaderOptions {
  store: EngineStore;
  sink: EventSink;
  /** Begins the sources of events. Must be the shard's own, and differ after the shard has lost its storage. */
  name: string;
  /** Resolves when everything that the store has written is durable. */
  sync(): Promise<void>;
  /** Called after events were uploaded. */
  onUploaded(): Promise<void>;
  now(): number;
}

const MAX_EVENTS = 500;
const FIRST_RETRY_MS = 100;
const MAX_RETRY_MS = 5_000;

/** Uploads the shard's events to libSQL, in their order and one batch at a time. A batch with an unknown outcome is sent again. */
export class Uploader {
  readonly #options: UploaderOptions;
  #running: Promise<void> | undefined;
  #failures = 0;
  #limit = MAX_EVENTS;
  #releaseMs: number;

  constructor(options: UploaderOptions) {
    this.#options = options;
    this.#releaseMs = options.store.time("release_ms") ?? Number.POSITIVE_INFINITY;
  }

  /** When `releaseIfDue` has something to do. */
  get releaseMs(): number {
    return this.#releaseMs;
  }

  /** Starts to upload, and returns without waiting for it. */
  start(): void {
    if (this.#options.store.outgoingCount === 0) return;
    this.#running ??= this.#run().catch((error: unknown) => log.error("bug", { error: describeError(error) }));
  }

  /** Writes the events of alerts whose silence has ended. */
  async releaseIfDue(): Promise<void> {
    const { sink, now, onUploaded } = this.#options;
    if (this.#releaseMs > now()) return;
    try {
      this.#setRelease((await sink.release()) ?? Number.POSITIVE_INFINITY);
      await onUploaded();
    } catch (error) {
      log.warn("silenced alerts not released", { error: describeError(error) });
      this.#setRelease(now() + MAX_RETRY_MS);
    }
  }

  #setRelease(releaseMs: number): void {
    this.#releaseMs = releaseMs;
    this.#options.store.setValue("release_ms", Number.isFinite(releaseMs) ? releaseMs : undefined);
  }

  async #run(): Promise<void> {
    try {
      while (this.#options.store.outgoingCount > 0) {
        if (this.#failures > 0) {
          await scheduler.wait(Math.min(FIRST_RETRY_MS * 2 ** (this.#failures - 1), MAX_RETRY_MS));
        }
        await this.#uploadNext();
      }
    } finally {
      this.#running = undefined;
    }
  }

  async #uploadNext(): Promise<void> {
    const { store, sink, name, sync, onUploaded } = this.#options;
    const rows = store.outgoing(this.#limit);
    const lastSeq = rows.at(-1)?.seq ?? 0;
    try {
      await sync();
      const releaseMs = await sink.upload(rows.map(({ seq, event }) => ({ source: `${name}/${seq}`, event })));
      if (releaseMs !== undefined) this.#setRelease(Math.min(releaseMs, this.#releaseMs));
      store.deleteOutgoing(lastSeq);
      this.#failures = 0;
      this.#limit = MAX_EVENTS;
      await onUploaded();
    } catch (error) {
      this.#failures++;
      log.warn("shard events not uploaded", {
        events: store.outgoingCount,
        failures: this.#failures,
        error: describeError(error),
      });
      if (isRejected(error)) this.#isolate(rows, error);
    }
  }

  /** Finds the event that libSQL rejects, and drops it: it must not hold up all others. */
  #isolate(rows: readonly OutgoingRow[], error: unknown): void {
    this.#limit = Math.max(1, rows.length >> 1);
    const [row] = rows;
    if (rows.length > 1 || row === undefined) return;
    log.error("shard event rejected", { kind: row.event.kind, error: describeError(error) });
    this.#options.store.deleteOutgoing(row.seq);
  }
}
