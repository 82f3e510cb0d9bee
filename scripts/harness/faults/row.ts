import type { World } from "./world.ts";

/** One row of the matrix: something that goes wrong, and what came of it. */

export interface Row {
  name: string;
  /** Why it cannot be run here, where it cannot. */
  skipped?: string;
  run(world: World, signal: AbortSignal): Promise<Outcome>;
}

export interface Outcome {
  /** Operations that the service said were done. */
  acknowledged: number;
  lost: number;
  doubled: number;
  /** From the end of the fault until the service was ready and everything got on again; nothing where that never came. */
  recoveredMs: number | undefined;
  /** From the end of the load until everything was there. */
  settledMs: number;
  /** What was not as promised, in words. */
  broken: string[];
  /** What is worth knowing besides. */
  remarks: string[];
}
