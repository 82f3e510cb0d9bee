import { withDeadline } from "../lib/deadline.ts";
import { describeError, log } from "../lib/log.ts";

const TIMEOUT_MS = 1_000;

export type Check = (signal: AbortSignal) => Promise<void>;

export interface Health {
  /** Checks every component once and returns its state. */
  check(): Promise<Record<string, "up" | "down">>;
}

export function createHealth(checks: Record<string, Check>): Health {
  return {
    async check() {
      const entries = Object.entries(checks).map(async ([name, check]) => [name, await stateOf(name, check)] as const);
      return Object.fromEntries(await Promise.all(entries));
    },
  };
}

async function stateOf(component: string, check: Check): Promise<"up" | "down"> {
  try {
    await withDeadline(TIMEOUT_MS, check);
    return "up";
  } catch (error) {
    log.warn("component down", { component, error: describeError(error) });
    return "down";
  }
}
