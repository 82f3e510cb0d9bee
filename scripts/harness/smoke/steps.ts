import { setTimeout as sleep } from "node:timers/promises";
import { isDeepStrictEqual } from "node:util";
import { dim, print, red, UserError } from "../../../src/programs/shared/cli.ts";

/** Prints one line for each step, with its time. The first step that fails ends the run. */
export class Steps {
  readonly #signal: AbortSignal;
  #count = 0;

  constructor(signal: AbortSignal) {
    this.#signal = signal;
  }

  readonly count = (): number => this.#count;

  readonly step = async <T>(name: string, work: () => Promise<T>): Promise<T> => {
    this.#signal.throwIfAborted();
    const startedMs = performance.now();
    const took = () => dim(`${Math.round(performance.now() - startedMs)} ms`);
    try {
      const outcome = await work();
      this.#count++;
      print(`✓ ${name}  ${took()}`);
      return outcome;
    } catch (error) {
      if (!this.#signal.aborted) print(`${red(`✗ ${name}`)}  ${took()}`);
      throw error;
    }
  };
}

export function expectThat(holds: boolean, otherwise: string): void {
  if (!holds) throw new UserError(otherwise);
}

const MAX_SHOWN = 300;
const shown = (value: unknown): string => (JSON.stringify(value) ?? "nothing").slice(0, MAX_SHOWN);

export function expectEqual(what: string, actual: unknown, expected: unknown): void {
  expectThat(isDeepStrictEqual(actual, expected), `${what}: expected ${shown(expected)}, got ${shown(actual)}`);
}

const POLL_MS = 250;

/** Polls until there is a result. `what` names what did not happen in time. */
export async function eventually<T>(what: string, seconds: number, poll: () => Promise<T | undefined>): Promise<T> {
  for (const deadlineMs = performance.now() + seconds * 1_000; ; await sleep(POLL_MS)) {
    const result = await poll();
    if (result !== undefined) return result;
    if (performance.now() > deadlineMs) throw new UserError(`${what}: not within ${seconds} s`);
  }
}
