import { UserError } from "../../../src/programs/shared/cli.ts";
import { ROOT } from "../../../src/programs/shared/system.ts";
import { run } from "../product.ts";

/** Checks out another revision of this project and installs its packages. */
export async function checkOut(revision: string, folder: string, signal: AbortSignal): Promise<void> {
  await runIn(ROOT, "git", ["worktree", "add", "--detach", "--force", folder, revision], signal);
  await runIn(folder, "npm", ["ci", "--no-audit", "--no-fund"], signal);
}

export async function removeCheckout(folder: string): Promise<void> {
  await run("git", ["worktree", "remove", "--force", folder], {}, "", { cwd: ROOT });
}

/** Runs a command in a folder. Throws with its output if it fails. */
export async function runIn(
  cwd: string,
  command: string,
  args: string[],
  signal: AbortSignal,
  env: Record<string, string> = {},
): Promise<void> {
  const { code, output } = await run(command, args, env, "", { cwd, signal });
  if (code !== 0) throw new UserError(`${command} ${args.join(" ")} failed:\n${output}`);
}
