import { setTimeout as sleep } from "node:timers/promises";
import { isDeepStrictEqual } from "node:util";
import { UserError } from "../../../src/programs/shared/cli.ts";
import type { CreatedResources } from "../cleanup.ts";
import type { ApiClient } from "../client.ts";

export interface SmokeRun {
  client: ApiClient;
  created: CreatedResources;
  /** The name of the app and of the agent, and the beginning of all other names. */
  name: string;
}

/** What the steps share: the run, and tokens of the accounts that it created, one of each kind. */
export interface SmokeContext extends SmokeRun {
  user: string;
  agent: string;
  app: string;
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
