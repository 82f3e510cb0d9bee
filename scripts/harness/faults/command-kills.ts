import type { Product } from "../product.ts";
import { Target } from "../target.ts";
import { killUnderLoad } from "./kills.ts";
import { startCommands } from "./loads/command-load.ts";

/** Spin-ups and commands while the broker dies. */

export interface CommandsOutcome {
  commands: number;
  spinups: number;
  /** Accepted, and neither carried out nor expired. */
  undone: string[];
  recoveredMs: number[];
}

export async function killUnderCommands(product: Product, kills: number): Promise<CommandsOutcome> {
  const load = await startCommands(new Target(product), { accessPoints: 20, pauseMs: 200, spinUpEveryMs: 5_000 });
  let recoveredMs: number[];
  try {
    recoveredMs = await killUnderLoad(product, { part: "broker", kills, progress: () => load.acknowledged });
  } finally {
    await load.stop();
  }
  const { undone } = await load.settle();
  return { commands: load.count("command"), spinups: load.count("spin-up"), undone, recoveredMs };
}
