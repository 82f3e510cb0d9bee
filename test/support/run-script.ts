import { join } from "node:path";
import { run } from "../../scripts/harness/product.ts";
import { ROOT } from "../../src/programs/shared/system.ts";

/** Runs one of the commands to its end, without npm, which would take as long again to begin. */
export const runScript = (name: string, args: string[], env: Record<string, string> = {}, input = "") =>
  run(process.execPath, [join(ROOT, `scripts/${name}.ts`), ...args], env, input);
