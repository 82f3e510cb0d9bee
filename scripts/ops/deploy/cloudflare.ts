import { spawn } from "node:child_process";
import { text } from "node:stream/consumers";
import { stripVTControlCharacters } from "node:util";
import * as z from "zod";
import { UserError } from "../../../src/programs/shared/cli.ts";
import { binPath, ROOT } from "../../../src/programs/shared/system.ts";
import { WRANGLER_ENVIRONMENT } from "../../../src/programs/stack/components/builds.ts";

/** Calls to Cloudflare, all through wrangler. Wrangler uses its own login or CLOUDFLARE_API_TOKEN. */

export interface Target {
  /** The name of the Worker, if it differs from wrangler.toml. */
  name: string | undefined;
  /** The operator's domain, instead of one at workers.dev. */
  domain: string | undefined;
}

const SecretList = z.array(z.object({ name: z.string() }));

export const secretNames = (output: string): string[] => SecretList.parse(JSON.parse(output)).map(({ name }) => name);

/** Returns the names of the Worker's secrets. A Worker that does not exist yet has none. */
export async function listSecrets(target: Target): Promise<string[]> {
  const { code, stdout, stderr } = await wrangler(["secret", "list", "--format", "json", ...nameOption(target)]);
  if (code === 0) return secretNames(stdout);
  if (/Worker ".*" not found/.test(stderr)) return [];
  throw new UserError(`Cannot list the secrets of the Worker: ${errorIn(stderr)}`);
}

/** Creates or replaces secrets, and keeps the others. Passes them over standard input, because process lists show arguments. */
export async function putSecrets(target: Target, secrets: Record<string, string>): Promise<void> {
  const { code, stderr } = await wrangler(["secret", "bulk", ...nameOption(target)], JSON.stringify(secrets));
  if (code !== 0) throw new UserError(`Cannot store the secrets: ${errorIn(stderr)}`);
}

/** Deploys the Worker. Shows the output of wrangler. */
export async function deployWorker(target: Target, vars: Record<string, string>): Promise<void> {
  const args = [
    ...["deploy", "--minify", ...nameOption(target)],
    ...(target.domain === undefined ? [] : ["--domain", target.domain]),
    ...Object.entries(vars).flatMap(([name, value]) => ["--var", `${name}:${value}`]),
  ];
  const child = spawn(binPath("wrangler"), args, {
    cwd: ROOT,
    stdio: ["ignore", "inherit", "inherit"],
    env: { ...process.env, ...WRANGLER_ENVIRONMENT },
  });
  const code = await new Promise((resolve) => child.once("close", resolve));
  if (code !== 0) throw new UserError("wrangler failed to deploy the Worker. Its output above gives the reason.");
}

const nameOption = ({ name }: Target): string[] => (name === undefined ? [] : ["--name", name]);

/** Returns the error message in the output of wrangler. */
const errorIn = (stderr: string): string => /\[ERROR\] (.+)/.exec(stderr)?.[1] ?? stderr.trim().slice(0, 300);

async function wrangler(args: string[], input = "") {
  const child = spawn(binPath("wrangler"), args, { cwd: ROOT, env: { ...process.env, ...WRANGLER_ENVIRONMENT } });
  child.stdin.end(input);
  const [stdout, stderr, code] = await Promise.all([
    text(child.stdout),
    text(child.stderr).then(stripVTControlCharacters),
    new Promise<number | null>((resolve) => child.once("close", resolve)),
  ]);
  return { code, stdout, stderr };
}
