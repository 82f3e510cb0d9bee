import { withDeadline } from "../lib/deadline.ts";
import { describeError, log } from "../lib/log.ts";

const TIMEOUT_MS = 1_000;

export type Check = (signal: AbortSignal) => Promise<void>;

export interface Health {
  /** Which of the parts behind the service answer at this moment. */
  check(): Promise<Record<string, "up" | "down">>;
}

export function createHealth(checks: Record<string, Check>): Health {
  return {
    async check() {
      const entries = Object.entries(checks).map(async ([name, check]) => [name, await outcome(name, check)] as const);
      return Object.fromEntries(await Promise.all(entries));
    },
  };
}

async function outcome(name: string, check: Check): Promise<"up" | "down"> {
  try {
    await withDeadline(TIMEOUT_MS, check);
    return "up";
  } catch (error) {
    log.warn("part is down", { part: name, error: describeError(error) });
    return "down";
  }
}
