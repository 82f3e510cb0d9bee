import { countValues } from "../samples.ts";
import type { AgentSample } from "../store/telemetry-store.ts";

/**
 * Keeps the latest committed samples of followed agents in memory, in the order of their commits, for live streams. A stream passes the
 * cursor up to which it has everything, and waits if there is nothing after it.
 *
 * The names of `FeedCursor` and `ChangeFeedPage` are serialised: cursors are stored with jobs, pages are returned by RPC.
 */
export interface FeedCursor {
  /** Changes when the object restarts, because `seq` then starts again. */
  epoch: string;
  seq: number;
}

export interface ChangeFeedPage {
  place: FeedCursor;
  samples: AgentSample[];
  /** Samples after the cursor were dropped. The reader must read them from the store. */
  isIncomplete: boolean;
}

/** The new samples of several agents. */
export interface SelectionPage {
  place: FeedCursor;
  samples: AgentSample[];
  /** Not all samples fit in the page. The next one continues at `place`. */
  hasMore: boolean;
}

export interface ChangeFeedOptions {
  /** Samples kept for one agent. */
  maxSamples: number;
  /** Memory for one agent, in bytes, estimated. */
  maxLength: number;
  /** Memory for all agents, in bytes, estimated. Beyond it, the least recently read agents are dropped first. */
  maxTotalLength: number;
  /** Agents that can be followed at the same time. */
  maxFollowed: number;
  /** An agent without a read for this long is no longer followed. */
  followedMs: number;
  now: () => number;
}

interface FollowedAgent {
  samples: { seq: number; sample: AgentSample; length: number }[];
  length: number;
  /** Samples up to this sequence number were dropped. */
  droppedUpTo: number;
  lastReadMs: number;
  /** Wakes the readers that wait for a sample. */
  waiting: Set<() => void>;
}

export class ChangeFeed {
  readonly #options: ChangeFeedOptions;
  readonly #epoch = crypto.randomUUID();
  /** In the order of their last reads. */
  readonly #followed = new Map<string, FollowedAgent>();
  #seq = 0;
  #totalLength = 0;

  constructor(options: ChangeFeedOptions) {
    this.#options = options;
  }

  get followed(): number {
    return this.#followed.size;
  }

  /** Adds committed samples and wakes the readers of their agents. */
  add(samples: readonly AgentSample[]): void {
    if (this.#followed.size === 0) return;
    const woken = new Set<FollowedAgent>();
    for (const sample of samples) {
      const followed = this.#followed.get(sample.apId);
      if (followed === undefined || countValues(sample) === 0) continue;
      if (this.#isExpired(followed)) {
        this.#unfollow(sample.apId, followed);
        continue;
      }
      const length = lengthOf(sample);
      followed.samples.push({ seq: ++this.#seq, sample, length });
      followed.length += length;
      this.#totalLength += length;
      woken.add(followed);
    }
    for (const followed of woken) this.#enforceAgentLimits(followed);
    this.#enforceTotalLimit();
    for (const followed of woken) for (const wake of followed.waiting) wake();
  }

  /**
   * Returns the samples after a cursor. Waits up to `waitMs` if there are none.
   * @param cursor without it, returns the current cursor and no samples
   */
  async since(apId: string, cursor: FeedCursor | undefined, waitMs: number): Promise<ChangeFeedPage> {
    const followed = this.#follow(apId);
    if (cursor === undefined) return this.#page([], false);
    if (cursor.epoch !== this.#epoch || cursor.seq < followed.droppedUpTo) return this.#page([], true);
    if ((followed.samples.at(-1)?.seq ?? 0) <= cursor.seq) await waitForWake(followed.waiting, waitMs);
    followed.lastReadMs = this.#options.now();
    const isIncomplete = cursor.seq < followed.droppedUpTo;
    return this.#page(isIncomplete ? [] : followed.samples.filter(({ seq }) => seq > cursor.seq), isIncomplete);
  }

  /**
   * Returns the samples of several agents after a cursor, in the order of their commits. Leaves out dropped samples, and those of agents
   * that were not followed before.
   * @param cursor without it, returns the current cursor and no samples
   */
  sinceMany(apIds: readonly string[], cursor: FeedCursor | undefined, maxSamples: number): SelectionPage {
    const followed = apIds.map((apId) => this.#follow(apId));
    const place = { epoch: this.#epoch, seq: this.#seq };
    if (cursor?.epoch !== this.#epoch) return { place, samples: [], hasMore: false };
    const changes = followed
      .flatMap(({ samples }) => samples.filter(({ seq }) => seq > cursor.seq))
      .toSorted((a, b) => a.seq - b.seq);
    const page = changes.slice(0, maxSamples);
    const hasMore = page.length < changes.length;
    return {
      place: hasMore ? { ...place, seq: page.at(-1)?.seq ?? cursor.seq } : place,
      samples: page.map(({ sample }) => sample),
      hasMore,
    };
  }

  #enforceAgentLimits(followed: FollowedAgent): void {
    const { maxSamples, maxLength } = this.#options;
    let count = 0;
    for (const { length } of followed.samples) {
      if (followed.samples.length - count <= maxSamples && followed.length <= maxLength) break;
      count++;
      followed.length -= length;
      this.#totalLength -= length;
    }
    followed.droppedUpTo = followed.samples.splice(0, count).at(-1)?.seq ?? followed.droppedUpTo;
  }

  /** Drops the samples of whole agents. Their readers read the store. */
  #enforceTotalLimit(): void {
    for (const followed of this.#followed.values()) {
      if (this.#totalLength <= this.#options.maxTotalLength) return;
      this.#clear(followed);
    }
  }

  #clear(followed: FollowedAgent): void {
    this.#totalLength -= followed.length;
    followed.length = 0;
    followed.droppedUpTo = followed.samples.splice(0).at(-1)?.seq ?? followed.droppedUpTo;
  }

  #unfollow(apId: string, followed: FollowedAgent): void {
    this.#clear(followed);
    this.#followed.delete(apId);
    // Its readers must learn that samples may be missing.
    followed.droppedUpTo = ++this.#seq;
    for (const wake of followed.waiting) wake();
  }

  #page(changes: readonly { sample: AgentSample }[], isIncomplete: boolean): ChangeFeedPage {
    return {
      place: { epoch: this.#epoch, seq: this.#seq },
      samples: changes.map(({ sample }) => sample),
      isIncomplete,
    };
  }

  #follow(apId: string): FollowedAgent {
    let followed = this.#followed.get(apId);
    if (followed === undefined || this.#isExpired(followed)) {
      // `add` expires only agents that report. The others expire here.
      for (const [otherId, other] of this.#followed) if (this.#isExpired(other)) this.#unfollow(otherId, other);
      for (const [otherId, other] of this.#followed) {
        if (this.#followed.size < this.#options.maxFollowed) break;
        this.#unfollow(otherId, other);
      }
      // A new sequence number: a reader with an earlier cursor may have missed samples.
      followed = { samples: [], length: 0, droppedUpTo: ++this.#seq, lastReadMs: 0, waiting: new Set() };
    }
    this.#followed.delete(apId);
    this.#followed.set(apId, followed);
    followed.lastReadMs = this.#options.now();
    return followed;
  }

  #isExpired({ lastReadMs, waiting }: FollowedAgent): boolean {
    return waiting.size === 0 && this.#options.now() - lastReadMs > this.#options.followedMs;
  }
}

/** Estimated bytes of an empty sample with its cursor, and of one value. */
const SAMPLE_LENGTH = 200;
const VALUE_LENGTH = 32;

function lengthOf({ metrics, texts }: AgentSample): number {
  let length = SAMPLE_LENGTH;
  for (const name in metrics) length += VALUE_LENGTH + name.length;
  for (const [name, text] of Object.entries(texts)) length += VALUE_LENGTH + name.length + text.length;
  return length;
}

/** Waits until a waker of the set is called or the time has passed. */
async function waitForWake(waiting: Set<() => void>, waitMs: number): Promise<void> {
  if (waitMs <= 0) return;
  const { promise, resolve } = Promise.withResolvers<void>();
  const timer = setTimeout(resolve, waitMs);
  waiting.add(resolve);
  await promise;
  waiting.delete(resolve);
  clearTimeout(timer);
}
