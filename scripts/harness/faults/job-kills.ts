import type { Product } from "../product.ts";
import { Target } from "../target.ts";
import { killUnderLoad } from "./kills.ts";
import { type JobsVerdict, startJobs } from "./loads/job-load.ts";

/** Callbacks and sockets while workerd dies. */

export interface JobsOutcome extends Omit<JobsVerdict, "faults">, Readonly<JobsVerdict["faults"]> {
  /** Callbacks that were answered with 200. */
  acknowledged: number;
  /** How long each kill took to be over: workerd is back, and callbacks get through again. */
  recoveredMs: number[];
}

export async function killUnderJobs(product: Product, kills: number): Promise<JobsOutcome> {
  const load = await startJobs(new Target(product), { readersOfJobs: [1, 1, 3, 4], sendersPerJob: 4, pauseMs: 20 });
  let recoveredMs: number[];
  try {
    recoveredMs = await killUnderLoad(product, { part: "worker", kills, progress: () => load.acknowledged });
  } finally {
    await load.stop();
  }
  const { faults, ...verdict } = await load.settle();
  return { ...verdict, ...faults, acknowledged: load.acknowledged, recoveredMs };
}
