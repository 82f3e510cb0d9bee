import { setTimeout as sleep } from "node:timers/promises";
import { MAX_DELIVERY_MESSAGES } from "../../schemas/telemetry.ts";
import { print } from "../shared/cli.ts";
import { type Outgoing, rejection } from "./outgoing.ts";

/**
 * Delivers messages in batches, one batch at a time.
 *
 * During an outage the queue retries the batch. If the controller rejects the content of a batch, the queue splits the batch until it
 * finds the bad message. It gives up only that message, and delivers a rejection in its place.
 */

export interface BatchQueueOptions {
  /** Throws `BatchRejected` if the controller rejects the content of the batch, and any other error during an outage. */
  send(batch: readonly Outgoing[]): Promise<void>;
  signal: AbortSignal;
  /** The pause before the first retry. Each further pause is twice as long, up to 5 s. */
  firstPauseMs?: number;
}

export class BatchRejected extends Error {
  override name = "BatchRejected";
  /** Whether the controller may accept the same content later: it failed, instead of rejecting the content. */
  readonly isRetryable: boolean;

  constructor(message: string, isRetryable: boolean) {
    super(message);
    this.isRetryable = isRetryable;
  }
}

/** A message that made the controller fail when it was delivered alone. It is retried without delaying other messages. */
interface Suspect {
  message: Outgoing;
  failures: number;
  dueMs: number;
  /** How many messages had been delivered when it first failed. */
  deliveredBefore: number;
}

/** Half of the controller's limit. The queue delivers a longer message alone. */
const MAX_BATCH_BYTES = 512 * 1024;
/** While this many messages, or bytes, wait, the bridge reads no more from the broker. */
const HIGH_WATER = 10_000;
const HIGH_WATER_BYTES = 32 * 1024 * 1024;
const DRAIN_POLL_MS = 20;
const FIRST_PAUSE_MS = 200;
const MAX_PAUSE_MS = 5_000;
const MAX_FAILURES = 4;
const MAX_SUSPECTS = 100;
const MAX_SUSPECT_BYTES = 8 * 1024 * 1024;
/** The number of suspects to retry between two batches. */
const SUSPECTS_AT_ONCE = 10;

export class BatchQueue {
  readonly #options: BatchQueueOptions;
  readonly #firstPauseMs: number;
  readonly #waiting: Outgoing[] = [];
  #waitingBytes = 0;
  #suspects: Suspect[] = [];
  #delivered = 0;
  #isRunning = false;
  #isDelivering = false;
  #room = Promise.withResolvers<void>();
  #arrival = new AbortController();

  constructor(options: BatchQueueOptions) {
    this.#options = options;
    this.#firstPauseMs = options.firstPauseMs ?? FIRST_PAUSE_MS;
  }

  /** Adds a message. If the queue is then full, returns a promise that resolves when there is room for more. */
  add(message: Outgoing): Promise<void> | undefined {
    this.#waiting.push(message);
    this.#waitingBytes += message.bytes;
    this.#arrival.abort();
    if (!this.#isRunning) {
      this.#isRunning = true;
      // Wait for the other messages that have already arrived.
      setImmediate(() => void this.#run());
    }
    return this.#isFull(1) ? this.#room.promise : undefined;
  }

  /** Resolves when no message waits and no delivery is in progress. The broker keeps suspects and delivers them again. */
  async drained(): Promise<void> {
    while ((this.#waiting.length > 0 || this.#isDelivering) && !this.#options.signal.aborted)
      await sleep(DRAIN_POLL_MS);
  }

  #isFull(share: number): boolean {
    return this.#waiting.length >= HIGH_WATER * share || this.#waitingBytes >= HIGH_WATER_BYTES * share;
  }

  async #run(): Promise<void> {
    const { signal } = this.#options;
    while ((this.#waiting.length > 0 || this.#suspects.length > 0) && !signal.aborted) {
      if (this.#waiting.length > 0) await this.#deliverNext();
      await this.#retrySuspects();
      if (this.#waiting.length === 0 && this.#suspects.length > 0) await this.#untilDueOrArrival();
    }
    this.#isRunning = false;
  }

  async #deliverNext(): Promise<void> {
    this.#isDelivering = true;
    await this.#deliver(this.#takeBatch());
    this.#isDelivering = false;
    if (this.#isFull(0.5)) return;
    this.#room.resolve();
    this.#room = Promise.withResolvers();
  }

  #takeBatch(): Outgoing[] {
    let bytes = 0;
    let count = 0;
    for (const message of this.#waiting) {
      if (count === MAX_DELIVERY_MESSAGES || (count > 0 && bytes + message.bytes > MAX_BATCH_BYTES)) break;
      bytes += message.bytes;
      count++;
    }
    this.#waitingBytes -= bytes;
    return this.#waiting.splice(0, count);
  }

  async #deliver(batch: readonly Outgoing[]): Promise<void> {
    const { signal } = this.#options;
    for (let pauseMs = this.#firstPauseMs; !signal.aborted; pauseMs = Math.min(pauseMs * 2, MAX_PAUSE_MS)) {
      try {
        return await this.#send(batch);
      } catch (error) {
        const [first] = batch;
        if (error instanceof BatchRejected && first !== undefined) {
          if (batch.length > 1) {
            // One half after the other, so that the messages of an agent stay in order.
            const middle = Math.ceil(batch.length / 2);
            await this.#deliver(batch.slice(0, middle));
            return await this.#deliver(batch.slice(middle));
          }
          // The controller accepts any rejection. If it does not, the controller itself fails, and the queue keeps the message.
          if (first.rejected === undefined) {
            if (!error.isRetryable) return await this.#deliver([rejection(first, error.message)]);
            if (await this.#addSuspect(first)) return;
          }
        }
        print(`Delivery of ${batch.length} messages failed, retrying: ${(error as Error).message}`);
        await sleep(pauseMs, undefined, { signal }).catch(() => {});
      }
    }
  }

  async #send(batch: readonly Outgoing[]): Promise<void> {
    await this.#options.send(batch);
    this.#delivered += batch.filter(({ rejected }) => rejected === undefined).length;
  }

  /**
   * Puts a message aside for a later retry, and gives up the oldest suspect if there is no room. Returns false if there is no room and
   * no other message was delivered since the oldest suspect failed: then the controller is at fault, not the message.
   */
  async #addSuspect(message: Outgoing): Promise<boolean> {
    const bytes = this.#suspects.reduce((sum, suspect) => sum + suspect.message.bytes, message.bytes);
    const [oldest] = this.#suspects;
    if (oldest !== undefined && (this.#suspects.length >= MAX_SUSPECTS || bytes > MAX_SUSPECT_BYTES)) {
      if (!this.#hasDeliveredSince(oldest)) return false;
      await this.#giveUp(oldest, "the controller failed to process it");
    }
    const dueMs = Date.now() + this.#firstPauseMs;
    this.#suspects.push({ message, failures: 1, dueMs, deliveredBefore: this.#delivered });
    return true;
  }

  #hasDeliveredSince({ deliveredBefore }: Suspect): boolean {
    return this.#delivered > deliveredBefore;
  }

  async #giveUp(suspect: Suspect, reason: string): Promise<void> {
    this.#suspects = this.#suspects.filter((other) => other !== suspect);
    await this.#deliver([rejection(suspect.message, reason)]);
  }

  async #retrySuspects(): Promise<void> {
    const due = this.#suspects.filter(({ dueMs }) => dueMs <= Date.now()).slice(0, SUSPECTS_AT_ONCE);
    for (const suspect of due) {
      if (this.#options.signal.aborted) return;
      try {
        await this.#send([suspect.message]);
        this.#suspects = this.#suspects.filter((other) => other !== suspect);
      } catch (error) {
        if (error instanceof BatchRejected) {
          suspect.failures++;
          // The message is at fault only if the controller accepts others.
          const isAtFault = suspect.failures >= MAX_FAILURES && this.#hasDeliveredSince(suspect);
          if (isAtFault || !error.isRetryable) await this.#giveUp(suspect, error.message);
        }
        suspect.dueMs = Date.now() + Math.min(this.#firstPauseMs * 2 ** suspect.failures, MAX_PAUSE_MS);
      }
    }
  }

  async #untilDueOrArrival(): Promise<void> {
    this.#arrival = new AbortController();
    const dueMs = Math.min(...this.#suspects.map((suspect) => suspect.dueMs));
    const signal = AbortSignal.any([this.#arrival.signal, this.#options.signal]);
    await sleep(Math.max(0, dueMs - Date.now()), undefined, { signal }).catch(() => {});
  }
}
