import * as z from "zod";
import { encodeJson, joinJsonArray } from "../../lib/encoding.ts";
import { DomainError } from "../../lib/errors.ts";
import { describeError, log } from "../../lib/log.ts";
import type { JobState } from "../../schemas/job.ts";
import type { Failure, Progress } from "../../schemas/stream.ts";
import type { Appended, NewMessage } from "../stream/message-buffer.ts";
import type { Throttle } from "./flow-control.ts";
import { countThatFits, endOf, messageTypeOf, type Producer, ProducerInput, type ProducerStep } from "./producer.ts";

export interface ProducerRunnerOptions {
  storage: Pick<DurableObjectStorage, "kv">;
  createProducer(input: ProducerInput): Producer;
  hasRoomFor(messages: readonly NewMessage[]): boolean;
  append(message: NewMessage): Appended;
  deliver(): Promise<void>;
  throttle(bytes: number): Throttle;
  /** Writes the job's state to the job store. */
  reportState(jobNumber: string, change: { state: JobState; detail: string }): Promise<unknown>;
  /** Returns when the last reader left, or undefined while one is connected. */
  unreadSinceMs(): number | undefined;
  now: () => number;
}

/** Stored in the object under `STATE_KEY`: field names must not change. */
const State = z.object({
  jobNumber: z.string(),
  work: ProducerInput,
  state: z.enum(["running", "done", "failed"]),
  detail: z.string(),
  rowsSent: z.int(),
  rowsEstimated: z.int().nullable(),
  /** Messages with rows since the last status message. */
  sinceStatus: z.int(),
  cursor: z.unknown(),
  /** Whether the state was reported to the job store. */
  isNoted: z.boolean(),
});
type State = z.output<typeof State>;

const STATE_KEY = "production";
/** Messages with rows between two status messages. */
const STATUS_EVERY = 20;
/** How often an alarm checks an unfinished producer, in case the object ended while it ran. */
const WATCH_MS = 30_000;
const RETRY_MS = 2_000;
/** A live stream polls the shards of its agents, which keep samples for it. That is too expensive without a reader. */
const SUSPENDED_AFTER_MS = 5 * 60_000;
/** The job store removes jobs that were not updated for two days. The alarm keeps a suspended job there. */
const SUSPENDED_WATCH_MS = 3_600_000;
const SUSPENDED = "Suspended until a reader connects";
/** Expected size of the first message; later ones are expected to be as large as the last. */
const INITIAL_BYTES = 256 * 1024;

/**
 * Runs a job's producer no faster than readers acknowledge. Stores a step's messages and its cursor together, so that another instance
 * of the object continues after the last step if this one ends.
 */
export class ProducerRunner {
  readonly #options: ProducerRunnerOptions;
  #cached: State | undefined;
  #isLoaded = false;
  #producer: Producer | undefined;
  #running: Promise<void> | undefined;
  #lastBytes = INITIAL_BYTES;
  #retryAtMs: number | undefined;

  constructor(options: ProducerRunnerOptions) {
    this.#options = options;
  }

  get rows(): { sent: number; estimated: number | null } | undefined {
    const state = this.#state;
    return state && { sent: state.rowsSent, estimated: state.rowsEstimated };
  }

  get isUnfinished(): boolean {
    return this.#state?.state === "running";
  }

  /** When to call `run` even if nothing else happens; infinity if there is nothing left to do. */
  get nextDueMs(): number {
    if (this.#state === undefined || (!this.isUnfinished && this.#state.isNoted)) return Number.POSITIVE_INFINITY;
    const { work, isNoted } = this.#state;
    const nowMs = this.#options.now();
    if (isNoted && this.#isSuspended) return Math.min(endOf(work) ?? nowMs, nowMs + SUSPENDED_WATCH_MS);
    return this.#retryAtMs ?? nowMs + WATCH_MS;
  }

  /** Whether this is a live stream without a reader. At its end it resumes, and reads the missed rows of one agent from the store. */
  get #isSuspended(): boolean {
    const state = this.#state;
    const endMs = state && endOf(state.work);
    if (state?.state !== "running" || endMs === undefined) return false;
    const nowMs = this.#options.now();
    const unreadSinceMs = this.#options.unreadSinceMs();
    return unreadSinceMs !== undefined && nowMs - unreadSinceMs >= SUSPENDED_AFTER_MS && nowMs < endMs;
  }

  begin(jobNumber: string, input: ProducerInput): void {
    if (this.#state !== undefined) return;
    this.#save({
      jobNumber,
      work: input,
      state: "running",
      detail: "",
      rowsSent: 0,
      rowsEstimated: null,
      sinceStatus: 0,
      cursor: undefined,
      isNoted: false,
    });
  }

  /** Stops producing, because the job was closed. */
  stop(): void {
    if (this.#state !== undefined && this.isUnfinished) {
      this.#save({ ...this.#state, state: "done", detail: "Stopped", isNoted: true });
    }
  }

  /** Resets the memory. To be called after the object's storage was deleted. */
  forget(): void {
    this.#cached = undefined;
    this.#isLoaded = false;
    this.#producer = undefined;
  }

  /** Produces until the end, or until the throttle or a full buffer stops it. Concurrent calls share one run. */
  run(): Promise<void> {
    this.#running ??= this.#run().finally(() => {
      this.#running = undefined;
    });
    return this.#running;
  }

  async #run(): Promise<void> {
    this.#retryAtMs = undefined;
    try {
      this.#describeSuspension();
      await this.#reportState();
      while (this.isUnfinished) {
        if (this.#isSuspended) {
          // Frees the rows that the producer has prefetched.
          this.#producer = undefined;
          this.#describeSuspension();
          break;
        }
        const throttle = this.#options.throttle(this.#lastBytes);
        if (!throttle.go) return;
        if (throttle.pauseMs > 0) await new Promise((resolve) => setTimeout(resolve, throttle.pauseMs));
        if (!(await this.#step())) return;
      }
      await this.#reportState();
    } catch (error) {
      log.warn("job producer paused", {
        job: this.#state?.jobNumber,
        error: describeError(error),
        retry_ms: RETRY_MS,
      });
      this.#retryAtMs = this.#options.now() + RETRY_MS;
    }
  }

  #describeSuspension(): void {
    const state = this.#state;
    if (state?.state !== "running") return;
    const detail = this.#isSuspended ? SUSPENDED : "";
    if (state.detail !== detail) this.#save({ ...state, detail, isNoted: false });
  }

  /** Takes one step. Returns false if its messages do not fit in the buffer; a later run repeats the step. */
  async #step(): Promise<boolean> {
    const before = this.#state;
    if (before === undefined) return false;
    this.#producer ??= this.#options.createProducer(before.work);
    const step = await this.#producer.next(before.cursor).catch((error: unknown) => {
      // Retry outages. Fail the job on any other error.
      if (error instanceof DomainError) throw error;
      log.error("bug", { error: describeError(error) });
      return undefined;
    });
    // `stop` may have been called meanwhile.
    if (this.#state !== before) return this.isUnfinished;
    const isStored = this.#store(before, step);
    if (isStored) await this.#options.deliver();
    return isStored;
  }

  /** Must not await: the platform writes everything up to the next await to disk atomically. */
  #store(before: State, step: ProducerStep | undefined): boolean {
    let next: State =
      step === undefined
        ? { ...before, state: "failed", detail: "Internal Server Error", isNoted: false }
        : { ...before, cursor: step.cursor, rowsEstimated: step.estimated ?? before.rowsEstimated };
    const messages: NewMessage[] = [];
    for (let rows = step?.rows ?? []; rows.length > 0; ) {
      const count = countThatFits(rows);
      const data = joinJsonArray(rows.slice(0, count));
      this.#lastBytes = data.length;
      messages.push({ type: messageTypeOf(before.work), data });
      rows = rows.slice(count);
      next = { ...next, rowsSent: next.rowsSent + count, sinceStatus: next.sinceStatus + 1 };
    }
    if (step?.isLast) next = { ...next, state: "done", detail: `${next.rowsSent} rows`, isNoted: false };
    const isEnd = next.state !== "running";
    if (isEnd || before.cursor === undefined || next.sinceStatus >= STATUS_EVERY) {
      messages.push(statusMessage(next));
      next = { ...next, sinceStatus: 0 };
    }
    if (!this.#options.hasRoomFor(messages)) return false;
    for (const message of messages) {
      const { outcome } = this.#options.append(message);
      if (outcome === "too_large") {
        // A retry would produce the same row, so the job fails.
        log.error("job row too large", { job: before.jobNumber });
        return this.#store(before, undefined);
      }
      if (outcome !== "stored") throw new Error(`A producer's message was not stored: ${outcome}`);
    }
    this.#save(next);
    return true;
  }

  async #reportState(): Promise<void> {
    const state = this.#state;
    if (state === undefined || state.isNoted) return;
    await this.#options.reportState(state.jobNumber, { state: state.state, detail: state.detail });
    if (this.#state === state) this.#save({ ...state, isNoted: true });
  }

  get #state(): State | undefined {
    if (!this.#isLoaded) {
      const stored = this.#options.storage.kv.get(STATE_KEY);
      this.#cached = stored === undefined ? undefined : State.parse(stored);
      this.#isLoaded = true;
    }
    return this.#cached;
  }

  #save(state: State): void {
    this.#options.storage.kv.put(STATE_KEY, state);
    this.#cached = state;
    this.#isLoaded = true;
  }
}

function statusMessage({ state, rowsSent, rowsEstimated, detail }: State): NewMessage {
  const progress: Progress = { state, rows_sent: rowsSent, rows_estimated: rowsEstimated };
  const failure: Failure = { ...progress, detail };
  return state === "failed"
    ? { type: "error", data: encodeJson(failure), final: true }
    : { type: "status", data: encodeJson(progress), final: state !== "running" };
}
