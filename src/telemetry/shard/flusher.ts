import { Unavailable } from "../../lib/errors.ts";
import { log } from "../../lib/log.ts";
import type { AgentSample } from "../store/telemetry-store.ts";
import type { Deduplicator } from "./deduplicator.ts";
import type { Journal, JournalRange, JournalRow } from "./journal.ts";
import { laneOf } from "./weeks.ts";

/**
 * Writes the journal to the telemetry store in few, large inserts, one at a time. Before each insert it decides which values are new, and
 * stores this decision together with the range of rows and a token. An insert with an unknown outcome is repeated, byte for byte, until it
 * succeeds: the store drops the second one because of its token.
 */
export interface FlusherOptions {
  journal: Journal;
  deduplicator: Pick<Deduplicator, "newSamples" | "committed">;
  /** Resolves when everything that the journal has written is durable. */
  sync(): Promise<void>;
  /** Inserts samples. A second call with the same token must change nothing. */
  insert(samples: readonly AgentSample[], token: string): Promise<void>;
  /** Called when the new values of rows are known, perhaps again before a repeated insert. */
  onDecided(rows: readonly JournalRow[]): void;
  /** Called when samples are stored. */
  onStored(samples: readonly AgentSample[]): void;
  /** Returns a text for the log, without anything that agents sent. */
  describe(error: unknown): string;
  /** Called for samples that the store rejects. They are not stored. */
  onInvalid(samples: readonly AgentSample[], error: unknown): void;
  /** Time between the starts of two flushes. */
  flushMs: number;
  /** A flush that a reader waits for starts this long after the last one. A full batch does not wait. */
  minFlushMs: number;
  /** Limits of one flush. */
  maxSamples: number;
  maxLength: number;
  now: () => number;
}

const FIRST_RETRY_MS = 100;
const MAX_RETRY_MS = 5_000;
/** Inserts for one agent in one flush, to find its invalid samples. Beyond it, the remaining samples count as invalid. */
const MAX_SEARCHES = 30;

export class Flusher {
  readonly #options: FlusherOptions;
  #isRunning = false;
  #startedMs = Number.NEGATIVE_INFINITY;
  #failures = 0;
  /** Ends the current wait, unless it follows a failure. */
  #wake = Promise.withResolvers<void>();
  /** Settles when the flush in progress ends, otherwise the next one. */
  #ended = Promise.withResolvers<void>();
  #isUrgent = false;

  constructor(options: FlusherOptions) {
    this.#options = options;
  }

  /** Whether the last flush failed. */
  get isStalled(): boolean {
    return this.#failures > 0;
  }

  /** Starts to write the journal, and returns without waiting for it. */
  start(): void {
    if (this.#isFull) this.#wake.resolve();
    if (!this.#isRunning) void this.#run();
  }

  /** Resolves when all samples that are in the journal now are stored. Throws `Unavailable` during an outage. */
  async drain(): Promise<void> {
    const { journal } = this.#options;
    for (const { lastSeq } = journal; journal.firstSeq <= lastSeq; ) {
      if (this.isStalled) throw new Unavailable("telemetry store", new Error("The journal cannot be written"));
      this.#isUrgent = true;
      this.#wake.resolve();
      this.start();
      await this.#ended.promise;
    }
  }

  get #isFull(): boolean {
    const { journal, maxSamples, maxLength } = this.#options;
    return journal.count >= maxSamples || journal.length >= maxLength;
  }

  async #run(): Promise<void> {
    this.#isRunning = true;
    while (!this.#options.journal.isEmpty) {
      await this.#untilDue();
      await this.#flush();
    }
    this.#isRunning = false;
  }

  async #untilDue(): Promise<void> {
    if (this.#failures > 0) {
      await scheduler.wait(Math.min(FIRST_RETRY_MS * 2 ** (this.#failures - 1), MAX_RETRY_MS));
      return;
    }
    const { flushMs, minFlushMs, now } = this.#options;
    this.#wake = Promise.withResolvers();
    if (this.#isFull || this.#isUrgent) this.#wake.resolve();
    // The clock may be set back.
    const waitMs = (ms: number) => Math.min(ms, Math.max(0, this.#startedMs + ms - now()));
    await Promise.race([this.#wake.promise, scheduler.wait(waitMs(flushMs))]);
    if (waitMs(minFlushMs) > 0 && !this.#isFull) await scheduler.wait(waitMs(minFlushMs));
  }

  async #flush(): Promise<void> {
    this.#startedMs = this.#options.now();
    this.#isUrgent = false;
    try {
      await this.#flushRange(this.#options.journal.range ?? (await this.#decide()));
      this.#failures = 0;
    } catch (error) {
      this.#failures++;
      log.warn("journal not written", {
        samples: this.#options.journal.count,
        failures: this.#failures,
        error: this.#options.describe(error),
      });
    }
    this.#ended.resolve();
    this.#ended = Promise.withResolvers();
  }

  /** Chooses the next rows, drops values that are stored already, and stores both decisions. */
  async #decide(): Promise<JournalRange> {
    const { journal, deduplicator, maxSamples, maxLength, now } = this.#options;
    const rows = journal.next(maxSamples, maxLength);
    const samples = rows.flatMap((row) => row.samples);
    const selected = await deduplicator.newSamples(samples);
    let end = 0;
    const decided = rows.map((row) => {
      const start = end;
      end += row.samples.length;
      return { seq: row.seq, samples: selected.slice(start, end) };
    });
    const changed = decided.filter((row, i) => row.samples.some((sample, k) => sample !== rows[i]?.samples[k]));
    const range = { last: rows.at(-1)?.seq ?? 0, token: crypto.randomUUID(), atMs: now() };
    journal.begin(range, changed);
    return range;
  }

  async #flushRange(range: JournalRange): Promise<void> {
    const { journal, deduplicator, sync, onDecided, onStored } = this.#options;
    const rows = journal.rowsOf(range);
    onDecided(rows);
    await sync();
    const samples = rows.flatMap((row) => row.samples);
    const searches = new Map<string, number>();
    // One insert for each group of weeks, so that one insert touches few partitions.
    for (const [lane, group] of Map.groupBy(samples, (sample) => laneOf(sample, range.atMs)))
      await this.#insert(group.toSorted(byAgent), `${range.token}-${lane ?? "current"}`, searches);
    journal.end(range);
    deduplicator.committed(samples);
    onStored(samples);
  }

  /**
   * Inserts samples. Divides a batch that the store rejects until the invalid samples are found, first between agents: an agent must not
   * lose samples because of another one. Each half has its own token, which is the same after a crash.
   */
  async #insert(samples: readonly AgentSample[], token: string, searches: Map<string, number>): Promise<void> {
    const { insert, onInvalid } = this.#options;
    try {
      await insert(samples, token);
    } catch (error) {
      if (error instanceof Unavailable || !(await this.#accepts(samples, token))) throw error;
      const [first, last] = [samples.at(0)?.apId ?? "", samples.at(-1)?.apId ?? ""];
      const count = (searches.get(first) ?? 0) + 1;
      if (first === last) searches.set(first, count);
      if (samples.length === 1 || (first === last && count > MAX_SEARCHES)) {
        onInvalid(samples, error);
        return;
      }
      const middle = middleOf(samples);
      await this.#insert(samples.slice(0, middle), `${token}0`, searches);
      await this.#insert(samples.slice(middle), `${token}1`, searches);
    }
  }

  /** Returns whether the store accepts a sample of these agents without values. If so, it rejects the values; if not, it rejects everything. */
  async #accepts([sample]: readonly AgentSample[], token: string): Promise<boolean> {
    if (sample === undefined) return false;
    try {
      await this.#options.insert([{ ...sample, tsMs: 0, metrics: {}, texts: {} }], `${token}-probe`);
      return true;
    } catch {
      return false;
    }
  }
}

const byAgent = (a: AgentSample, b: AgentSample): number => (a.apId < b.apId ? -1 : Number(a.apId > b.apId));

/** Returns the middle of samples that are sorted by agent: between two agents, if there are several. */
function middleOf(samples: readonly AgentSample[]): number {
  const middle = samples.length >> 1;
  const { apId } = samples[middle] ?? { apId: "" };
  const start = samples.findIndex((sample) => sample.apId === apId);
  if (start > 0) return start;
  const end = samples.findIndex((sample) => sample.apId !== apId);
  return end > 0 ? end : middle;
}
