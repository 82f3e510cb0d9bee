import { setTimeout as sleep } from "node:timers/promises";
import { type Product, until } from "../product.ts";

const LOAD_BEFORE_KILL_MS = 500;
/** A part that dies five times within a minute ends the product, and rightly so. */
const BETWEEN_KILLS_MS = 15_500;
const TIMEOUT_MS = 60_000;

export interface KillOptions {
  part: string;
  kills: number;
  /** How much of the load has got through so far. */
  progress: () => number;
}

/** Kills a part again and again; how long each kill took to be over: the part is back, and the load gets through again. */
export async function killUnderLoad(product: Product, { part, kills, progress }: KillOptions): Promise<number[]> {
  const recoveredMs: number[] = [];
  let startedMs = Number.NEGATIVE_INFINITY;
  for (let kill = 0; kill < kills; kill++) {
    await sleep(Math.max(LOAD_BEFORE_KILL_MS, startedMs + BETWEEN_KILLS_MS - performance.now()));
    const pid = product.pidOf(part);
    startedMs = performance.now();
    process.kill(pid, "SIGKILL");
    const before = progress();
    await until(async () => {
      if (product.pidOf(part) === pid || progress() <= before) return false;
      const response = await fetch(`${product.url}/readyz`).catch(() => undefined);
      return response?.ok ?? false;
    }, TIMEOUT_MS);
    recoveredMs.push(performance.now() - startedMs);
  }
  return recoveredMs;
}
