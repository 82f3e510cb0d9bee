import * as z from "zod";
import { DomainError } from "../../lib/errors.ts";
import { describeError, log } from "../../lib/log.ts";
import type { JobState } from "../../schemas/job.ts";
import type { Failure, Progress } from "../../schemas/stream.ts";
import type { Appended, NewMessage } from "../stream/message-buffer.ts";
import type { Throttle } from "./flow-control.ts";
import { countThatFits, type Producer, ProducerInput, type ProducerStep } from "./producer.ts";

/**
 * What the service itself produces for a job: no faster than it is read, and from where it was if the object or the machine ends
 * in the middle. A step's messages and the place to go on from are stored together.
 */
export interface ProducerRunnerOptions {
  storage: Pick<DurableObjectStorage, "kv">;
  producerOf(work: ProducerInput): Producer;
  hasRoomFor(messages: readonly NewMessage[]): boolean;
  append(message: NewMessage): Appended;
  deliver(): Promise<void>;
  throttle(bytes: number): Throttle;
  /** Tells the index of jobs. */
  note(jobNumber: string, change: { state: JobState; detail: string }): Promise<unknown>;
  /** When the last reader left; nothing while one is connected. */
  unreadSinceMs(): number | undefined;
  now: () => number;
}

const State = z.object({
  jobNumber: z.string(),
  work: ProducerInput,
  state: z.enum(["running", "done", "failed"]),
  detail: z.string(),
  rowsSent: z.int(),
  rowsEstimated: z.int().nullable(),
  /** Messages with rows, since the last one that told how far it has come. */
  sinceStatus: z.int(),
  cursor: z.unknown(),
  /** Whether the index knows the state. */
  isNoted: z.boolean(),
});
type State = z.output<typeof State>;

const KEY = "production";
const STATUS_EVERY = 20;
/** As long as something is to be done, somebody looks after it. */
const WATCH_MS = 30_000;
const RETRY_MS = 2_000;
/** A live stream polls its agent's shard, which remembers samples for it: too much for one that has no reader. */
const SUSPENDED_AFTER_MS = 5 * 60_000;
/** The index removes jobs that it has not heard of for two days; the alarm reports to it. */
const SUSPENDED_WATCH_MS = 3_600_000;
const SUSPENDED = "Suspended until a reader connects";
/** Before a first message has shown how large they are. */
const USUAL_BYTES = 256 * 1024;

export class ProducerRunner {
  readonly #options: ProducerRunnerOptions;
  #known: State | undefined;
  #isRead = false;
  #producer: Producer | undefined;
  #running: Promise<void> | undefined;
  #lastBytes = USUAL_BYTES;
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

  /** When somebody must look after it, even though nobody comes. */
  get nextDueMs(): number {
    if (this.#state === undefined || (!this.isUnfinished && this.#state.isNoted)) return Number.POSITIVE_INFINITY;
    const { work, isNoted } = this.#state;
    const nowMs = this.#options.now();
    if (isNoted && work.kind === "agent_data" && this.#isSuspended) {
      return Math.min(work.toMs, nowMs + SUSPENDED_WATCH_MS);
    }
    return this.#retryAtMs ?? nowMs + WATCH_MS;
  }

  /** Whether this is a live stream that no one reads. At its end it goes on, and reads from the store what it missed. */
  get #isSuspended(): boolean {
    const state = this.#state;
    if (state?.state !== "running" || state.work.kind !== "agent_data") return false;
    const nowMs = this.#options.now();
    const unreadSinceMs = this.#options.unreadSinceMs();
    return unreadSinceMs !== undefined && nowMs - unreadSinceMs >= SUSPENDED_AFTER_MS && nowMs < state.work.toMs;
  }

  begin(jobNumber: string, work: ProducerInput): void {
    if (this.#state !== undefined) return;
    this.#save({
      jobNumber,
      work,
      state: "running",
      detail: "",
      rowsSent: 0,
      rowsEstimated: null,
      sinceStatus: 0,
      cursor: undefined,
      isNoted: false,
    });
  }

  /** The job has been closed: nothing more is wanted. */
  stop(): void {
    if (this.#state !== undefined && this.isUnfinished) {
      this.#save({ ...this.#state, state: "done", detail: "Stopped", isNoted: true });
    }
  }

  /** To be called when all storage of the object has been deleted. */
  forget(): void {
    this.#known = undefined;
    this.#isRead = false;
    this.#producer = undefined;
  }

  /** Goes on for as long as it may. Whoever calls while it does waits for the same. */
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
      await this.#noteState();
      while (this.isUnfinished) {
        if (this.#isSuspended) {
          // With it goes what it has read ahead.
          this.#producer = undefined;
          this.#describeSuspension();
          break;
        }
        const throttle = this.#options.throttle(this.#lastBytes);
        if (!throttle.go) return;
        if (throttle.pauseMs > 0) await new Promise((resolve) => setTimeout(resolve, throttle.pauseMs));
        if (!(await this.#step())) return;
      }
      await this.#noteState();
    } catch (error) {
      log.warn("a job's production has to wait", { error: describeError(error) });
      this.#retryAtMs = this.#options.now() + RETRY_MS;
    }
  }

  #describeSuspension(): void {
    const state = this.#state;
    if (state?.state !== "running") return;
    const detail = this.#isSuspended ? SUSPENDED : "";
    if (state.detail !== detail) this.#save({ ...state, detail, isNoted: false });
  }

  /** Whether it could be stored; where there is no room, it is taken again later. */
  async #step(): Promise<boolean> {
    const before = this.#state;
    if (before === undefined) return false;
    this.#producer ??= this.#options.producerOf(before.work);
    const step = await this.#producer.next(before.cursor).catch((error: unknown) => {
      // What may pass is tried again; anything else would fail for ever.
      if (error instanceof DomainError) throw error;
      log.error("bug", { error: describeError(error) });
      return undefined;
    });
    // It may have been stopped meanwhile.
    if (this.#state !== before) return this.isUnfinished;
    const isStored = this.#store(before, step);
    if (isStored) await this.#options.deliver();
    return isStored;
  }

  /** Without a single wait: what is written in one go is on disk as a whole or not at all. */
  #store(before: State, step: ProducerStep | undefined): boolean {
    let next: State =
      step === undefined
        ? { ...before, state: "failed", detail: "Internal Server Error", isNoted: false }
        : { ...before, cursor: step.cursor, rowsEstimated: step.estimated ?? before.rowsEstimated };
    const messages: NewMessage[] = [];
    for (let rows = step?.rows ?? []; rows.length > 0; ) {
      const count = countThatFits(rows);
      const data = `[${rows.slice(0, count).join()}]`;
      this.#lastBytes = data.length;
      messages.push({ type: before.work.kind, data });
      rows = rows.slice(count);
      next = { ...next, rowsSent: next.rowsSent + count, sinceStatus: next.sinceStatus + 1 };
    }
    if (step?.isLast) next = { ...next, state: "done", detail: `${next.rowsSent} rows`, isNoted: false };
    const isEnd = next.state !== "running";
    if (isEnd || before.cursor === undefined || next.sinceStatus >= STATUS_EVERY) {
      const { state, rowsSent, rowsEstimated, detail } = next;
      const progress: Progress = { state, rows_sent: rowsSent, rows_estimated: rowsEstimated };
      const failure: Failure = { ...progress, detail };
      messages.push(
        state === "failed"
          ? { type: "error", data: JSON.stringify(failure), final: true }
          : { type: "status", data: JSON.stringify(progress), final: isEnd },
      );
      next = { ...next, sinceStatus: 0 };
    }
    if (!this.#options.hasRoomFor(messages)) return false;
    for (const message of messages) {
      const { outcome } = this.#options.append(message);
      if (outcome === "too_large") {
        // It would be so at every attempt.
        log.error("a job's row is too large", { job: before.jobNumber });
        return this.#store(before, undefined);
      }
      if (outcome !== "stored") throw new Error(`A message of the service's own is ${outcome}`);
    }
    this.#save(next);
    return true;
  }

  async #noteState(): Promise<void> {
    const state = this.#state;
    if (state === undefined || state.isNoted) return;
    await this.#options.note(state.jobNumber, { state: state.state, detail: state.detail });
    if (this.#state === state) this.#save({ ...state, isNoted: true });
  }

  get #state(): State | undefined {
    if (!this.#isRead) {
      const stored = this.#options.storage.kv.get(KEY);
      this.#known = stored === undefined ? undefined : State.parse(stored);
      this.#isRead = true;
    }
    return this.#known;
  }

  #save(state: State): void {
    this.#options.storage.kv.put(KEY, state);
    this.#known = state;
    this.#isRead = true;
  }
}
