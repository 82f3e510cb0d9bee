import { countValues } from "../samples.ts";
import type { AgentSample } from "../store/telemetry-store.ts";

/**
 * What was committed lately of those agents that somebody follows, in the order of its coming, for live streams: each asks for what
 * came after the place up to which it has everything, and waits where nothing has.
 */
export interface FeedCursor {
  /** Memory is not for ever: a place is one in the memory of one object. */
  epoch: string;
  seq: number;
}

export interface ChangeFeedPage {
  place: FeedCursor;
  samples: AgentSample[];
  /** Something in between is not remembered any more, and has to be read from the store. */
  isIncomplete: boolean;
}

export interface ChangeFeedOptions {
  /** Of one agent: how many, and how much of memory they may take, in bytes, about. */
  maxSamples: number;
  maxLength: number;
  /** Of all agents together. Beyond that, those that were not asked for the longest time are forgotten first. */
  maxTotalLength: number;
  /** How many agents can be followed at a time. */
  maxFollowed: number;
  /** An agent that nobody has asked for during this time is not followed any more. */
  followedMs: number;
  now: () => number;
}

interface Followed {
  samples: { seq: number; sample: AgentSample; length: number }[];
  length: number;
  /** What came up to here is not remembered. */
  forgottenUpTo: number;
  askedMs: number;
  waiting: Set<() => void>;
}

export class ChangeFeed {
  readonly #options: ChangeFeedOptions;
  readonly #epoch = crypto.randomUUID();
  /** In the order in which they were last asked for. */
  readonly #followed = new Map<string, Followed>();
  #seq = 0;
  #totalLength = 0;

  constructor(options: ChangeFeedOptions) {
    this.#options = options;
  }

  get followed(): number {
    return this.#followed.size;
  }

  /** Samples that have been committed. */
  add(samples: readonly AgentSample[]): void {
    if (this.#followed.size === 0) return;
    const woken = new Set<Followed>();
    for (const sample of samples) {
      const followed = this.#followed.get(sample.apId);
      if (followed === undefined || countValues(sample) === 0) continue;
      if (this.#isForgotten(followed)) {
        this.#unfollow(sample.apId, followed);
        continue;
      }
      const length = lengthOf(sample);
      followed.samples.push({ seq: ++this.#seq, sample, length });
      followed.length += length;
      this.#totalLength += length;
      woken.add(followed);
    }
    for (const followed of woken) this.#makeRoom(followed);
    this.#makeRoomInAll();
    for (const followed of woken) for (const wake of followed.waiting) wake();
  }

  /** What came after a place; without one, from now on. Waits for so long at the most where nothing did. */
  async since(apId: string, place: FeedCursor | undefined, waitMs: number): Promise<ChangeFeedPage> {
    const followed = this.#follow(apId);
    if (place === undefined) return this.#answer([], false);
    if (place.epoch !== this.#epoch || place.seq < followed.forgottenUpTo) return this.#answer([], true);
    if ((followed.samples.at(-1)?.seq ?? 0) <= place.seq) await wakeWithin(followed.waiting, waitMs);
    followed.askedMs = this.#options.now();
    const isIncomplete = place.seq < followed.forgottenUpTo;
    return this.#answer(isIncomplete ? [] : followed.samples.filter(({ seq }) => seq > place.seq), isIncomplete);
  }

  #makeRoom(followed: Followed): void {
    const { maxSamples, maxLength } = this.#options;
    let count = 0;
    for (const { length } of followed.samples) {
      if (followed.samples.length - count <= maxSamples && followed.length <= maxLength) break;
      count++;
      followed.length -= length;
      this.#totalLength -= length;
    }
    followed.forgottenUpTo = followed.samples.splice(0, count).at(-1)?.seq ?? followed.forgottenUpTo;
  }

  /** A reader who lacks what is forgotten here reads it from the store. */
  #makeRoomInAll(): void {
    for (const followed of this.#followed.values()) {
      if (this.#totalLength <= this.#options.maxTotalLength) return;
      this.#clear(followed);
    }
  }

  #clear(followed: Followed): void {
    this.#totalLength -= followed.length;
    followed.length = 0;
    followed.forgottenUpTo = followed.samples.splice(0).at(-1)?.seq ?? followed.forgottenUpTo;
  }

  #unfollow(apId: string, followed: Followed): void {
    this.#clear(followed);
    this.#followed.delete(apId);
    // Its readers hear that something may be missing.
    followed.forgottenUpTo = ++this.#seq;
    for (const wake of followed.waiting) wake();
  }

  #answer(news: readonly { sample: AgentSample }[], isIncomplete: boolean): ChangeFeedPage {
    return { place: { epoch: this.#epoch, seq: this.#seq }, samples: news.map(({ sample }) => sample), isIncomplete };
  }

  #follow(apId: string): Followed {
    let followed = this.#followed.get(apId);
    if (followed === undefined || this.#isForgotten(followed)) {
      // Those that neither report nor are asked for any more would stay for ever.
      for (const [other, its] of this.#followed) if (this.#isForgotten(its)) this.#unfollow(other, its);
      for (const [other, its] of this.#followed) {
        if (this.#followed.size < this.#options.maxFollowed) break;
        this.#unfollow(other, its);
      }
      // A number of its own: a reader with an earlier place may have missed something.
      followed = { samples: [], length: 0, forgottenUpTo: ++this.#seq, askedMs: 0, waiting: new Set() };
    }
    this.#followed.delete(apId);
    this.#followed.set(apId, followed);
    followed.askedMs = this.#options.now();
    return followed;
  }

  #isForgotten({ askedMs, waiting }: Followed): boolean {
    return waiting.size === 0 && this.#options.now() - askedMs > this.#options.followedMs;
  }
}

/** A sample's object and its place, and those of one value, in bytes, about. */
const SAMPLE_LENGTH = 200;
const VALUE_LENGTH = 32;

function lengthOf({ metrics, texts }: AgentSample): number {
  let length = SAMPLE_LENGTH;
  for (const name in metrics) length += VALUE_LENGTH + name.length;
  for (const [name, text] of Object.entries(texts)) length += VALUE_LENGTH + name.length + text.length;
  return length;
}

async function wakeWithin(waiting: Set<() => void>, waitMs: number): Promise<void> {
  if (waitMs <= 0) return;
  const { promise, resolve } = Promise.withResolvers<void>();
  const timer = setTimeout(resolve, waitMs);
  waiting.add(resolve);
  await promise;
  waiting.delete(resolve);
  clearTimeout(timer);
}
