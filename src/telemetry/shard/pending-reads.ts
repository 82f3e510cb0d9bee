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
export interface PendingSamples {
  /** JSON texts, separated by commas, in the order of their arrival. */
  text: string;
  /** Whether the store does not respond. */
  isStoreDown: boolean;
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
  async ofAgent(apId: string, range: PendingRange): Promise<string> {
    return await this.#read(() => toTexts(this.#options.journal.samplesOf(apId), range), MAX_OF_AGENT);
  }

  /** Like `ofAgent`, for several agents. */
  async ofMany(apIds: readonly string[], range: PendingRange): Promise<string> {
    const { journal } = this.#options;
    const names = new Set(apIds);
    const find = (): string[] => {
      if (apIds.length <= FEW_AGENTS) return apIds.flatMap((apId) => toTexts(journal.samplesOf(apId), range));
      const texts: string[] = [];
      for (const { samples } of journal.rows()) texts.push(...toTexts(samples, range, names));
      return texts;
    };
    return await this.#read(find, MAX_OF_MANY);
  }

  /** Returns samples, separated by commas. During an outage, the beginning of a backlog is missing. */
  async #read(find: () => string[], maxCount: number): Promise<string> {
    let texts = find();
    const isTooLong = () => texts.length > maxCount || lengthOf(texts) > MAX_LENGTH;
    if (isTooLong()) {
      await this.#options.drain();
      texts = find().slice(-maxCount);
      while (isTooLong()) texts = texts.slice(Math.ceil(texts.length / 2));
    }
    return texts.join();
  }
}

const lengthOf = (texts: readonly string[]): number => texts.reduce((sum, { length }) => sum + length + 1, 0);

const toTexts = (
  samples: readonly AgentSample[],
  { fromMs, toMs }: PendingRange,
  apIds?: ReadonlySet<string>,
): string[] =>
  samples
    .filter(({ apId, tsMs }) => tsMs >= fromMs && tsMs <= toMs && (apIds?.has(apId) ?? true))
    .map((sample) => JSON.stringify(sample));
