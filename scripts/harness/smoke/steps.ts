import { isDeepStrictEqual } from "node:util";
import { dim, print, red, UserError } from "../../../src/programs/shared/cli.ts";

/** One line for each step, with its time. The first that fails ends the run. */
export class Steps {
  readonly #signal: AbortSignal;
  count = 0;

  constructor(signal: AbortSignal) {
    this.#signal = signal;
  }

  async step<T>(name: string, work: () => Promise<T>): Promise<T> {
    this.#signal.throwIfAborted();
    const startedMs = performance.now();
    const took = () => dim(`${Math.round(performance.now() - startedMs)} ms`);
    try {
      const outcome = await work();
      this.count++;
      print(`✓ ${name}  ${took()}`);
      return outcome;
    } catch (error) {
      if (!this.#signal.aborted) print(`${red(`✗ ${name}`)}  ${took()}`);
      throw error;
    }
  }
}

/** Fails where something is not as it should be. */
export function expectThat(holds: boolean, otherwise: string): void {
  if (!holds) throw new UserError(otherwise);
}

const MAX_SHOWN = 300;
const shown = (value: unknown): string => (JSON.stringify(value) ?? "nothing").slice(0, MAX_SHOWN);

export function expectEqual(what: string, actual: unknown, expected: unknown): void {
  expectThat(isDeepStrictEqual(actual, expected), `${what}: expected ${shown(expected)}, got ${shown(actual)}`);
}

const POLL_MS = 250;

/** Asks again until there is an answer; `what` says what was waited for in vain. */
export async function eventually<T>(what: string, seconds: number, ask: () => Promise<T | undefined>): Promise<T> {
  for (const deadlineMs = performance.now() + seconds * 1_000; ; ) {
    const outcome = await ask();
    if (outcome !== undefined) return outcome;
    if (performance.now() > deadlineMs) throw new UserError(`${what}: not within ${seconds} s`);
    await new Promise((resolve) => setTimeout(resolve, POLL_MS));
  }
}
