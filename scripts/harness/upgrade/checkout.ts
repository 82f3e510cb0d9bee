import { spawn } from "node:child_process";
import { UserError } from "../../../src/programs/shared/cli.ts";
import { ROOT } from "../../../src/programs/shared/system.ts";

/** Another revision of this project beside the present one, with what it needs installed. */
export async function checkOut(revision: string, folder: string, signal: AbortSignal): Promise<void> {
  await runIn(ROOT, "git", ["worktree", "add", "--detach", "--force", folder, revision], signal);
  await runIn(folder, "npm", ["ci", "--no-audit", "--no-fund"], signal);
  // v0.1.0 starts only where the dashboard was built once.
  await runIn(folder, "npm", ["run", "build", "--if-present"], signal);
}

export async function removeCheckout(folder: string): Promise<void> {
  await runIn(ROOT, "git", ["worktree", "remove", "--force", folder]).catch(() => {});
}

export async function runIn(
  cwd: string,
  command: string,
  args: string[],
  signal?: AbortSignal,
  env: Record<string, string> = {},
): Promise<void> {
  const child = spawn(command, args, { cwd, env: { ...process.env, ...env }, ...(signal && { signal }) });
  let output = "";
  for (const stream of [child.stdout, child.stderr])
    stream.on("data", (chunk: Buffer) => {
      output += chunk.toString();
    });
  const code = await new Promise<number | null>((resolve, reject) => {
    child.once("error", reject);
    child.once("close", resolve);
  });
  if (code !== 0) throw new UserError(`${command} ${args.join(" ")} failed:\n${output}`);
}
