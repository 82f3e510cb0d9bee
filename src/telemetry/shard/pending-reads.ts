import type { AgentSample } from "../store/telemetry-store.ts";
import type { Journal } from "./journal.ts";

/** Reads samples that may not be in the telemetry store yet. */

/** Pending samples of one agent in one response: their times are a parameter of a query, which has at most 128 KiB. */
const MAX_OF_AGENT = 5_000;
/** Pending samples of many agents in one response, and the characters of their JSON. The platform's limit for a call is 32 MiB. */
const MAX_OF_MANY = 50_000;
const MAX_LENGTH = 8 * 1024 * 1024;
/** For more agents it is faster to read the whole journal. */
const FEW_AGENTS = 20;

/** Samples that may not be in the store yet. */
export interface PendingSamples extends PendingTexts {
  /** Whether the store does not respond. */
  isStoreDown: boolean;
}

export interface PendingTexts {
  /** JSON texts, separated by commas, in the order of their arrival. */
  text: string;
  /** Whether the first ones are missing, because there are too many. The store may not have them. */
  isTruncated: boolean;
}

export interface PendingRange {
  fromMs: number;
  toMs: number;
}

export interface PendingReadsOptions {
  journal: Pick<Journal, "samplesOf" | "rows">;
  /** Writes the journal to the store, unless the store does not respond. */
  drain: () => Promise<unknown>;
}

export class PendingReads {
  readonly #options: PendingReadsOptions;

  constructor(options: PendingReadsOptions) {
    this.#options = options;
  }

  /** Returns the agent's samples as JSON, the last ones if there are many. First writes a backlog to the store. */
  async ofAgent(apId: string, range: PendingRange): Promise<PendingTexts> {
    return await this.#read([apId], range, MAX_OF_AGENT);
  }

  /** Like `ofAgent`, for several agents. */
  async ofMany(apIds: readonly string[], range: PendingRange): Promise<PendingTexts> {
    return await this.#read(apIds, range, MAX_OF_MANY);
  }

  async #read(apIds: readonly string[], range: PendingRange, maxCount: number): Promise<PendingTexts> {
    const found = this.#find(apIds, range, maxCount);
    if (!found.isTruncated) return found;
    await this.#options.drain();
    return this.#find(apIds, range, maxCount);
  }

  #find(apIds: readonly string[], { fromMs, toMs }: PendingRange, maxCount: number): PendingTexts {
    const { journal } = this.#options;
    const names = new Set(apIds);
    const last = new LastTexts(maxCount);
    const add = (samples: readonly AgentSample[]): void => {
      for (const sample of samples) {
        const { apId, tsMs } = sample;
        if (tsMs >= fromMs && tsMs <= toMs && names.has(apId)) last.add(JSON.stringify(sample));
      }
    };
    if (apIds.length <= FEW_AGENTS) for (const apId of apIds) add(journal.samplesOf(apId));
    else for (const { samples } of journal.rows()) add(samples);
    return last.result();
  }
}

/** Keeps the last texts. A journal can have more than fits into memory. */
class LastTexts {
  readonly #maxCount: number;
  #texts: string[] = [];
  /** How many of the texts were dropped. */
  #dropped = 0;
  #length = 0;
  #isTruncated = false;

  constructor(maxCount: number) {
    this.#maxCount = maxCount;
  }

  add(text: string): void {
    this.#texts.push(text);
    this.#length += text.length + 1;
    while (this.#texts.length - this.#dropped > this.#maxCount || this.#length > MAX_LENGTH) {
      this.#length -= (this.#texts[this.#dropped]?.length ?? 0) + 1;
      this.#texts[this.#dropped++] = "";
      this.#isTruncated = true;
    }
    if (this.#dropped > this.#maxCount) {
      this.#texts = this.#texts.slice(this.#dropped);
      this.#dropped = 0;
    }
  }

  result(): PendingTexts {
    return { text: this.#texts.slice(this.#dropped).join(), isTruncated: this.#isTruncated };
  }
}
