/** Requests that are counted, by kind: how many there were, how many failed, and how long the longest took. */

export interface Tally {
  count: number;
  failures: string[];
  longestMs: number;
}

const TIMEOUT_MS = 180_000;

export class Requests {
  readonly #url: string;
  #tallies = new Map<string, Tally>();

  constructor(url: string) {
    this.#url = url;
  }

  /** Whether it was answered with 200. */
  async send(kind: string, path: string, init: RequestInit = {}): Promise<boolean> {
    const startedMs = performance.now();
    const outcome = await fetch(`${this.#url}${path}`, { ...init, signal: AbortSignal.timeout(TIMEOUT_MS) }).then(
      async (response) => {
        await response.arrayBuffer();
        return String(response.status);
      },
      (error: unknown) => String(error),
    );
    const tally = this.#tallies.get(kind) ?? { count: 0, failures: [], longestMs: 0 };
    this.#tallies.set(kind, tally);
    tally.count++;
    tally.longestMs = Math.max(tally.longestMs, performance.now() - startedMs);
    if (outcome !== "200") tally.failures.push(outcome);
    return outcome === "200";
  }

  /** What there was since the last time. */
  take(): Map<string, Tally> {
    const tallies = this.#tallies;
    this.#tallies = new Map();
    return tallies;
  }
}
