import { spawn } from "node:child_process";
import { text } from "node:stream/consumers";
import { stripVTControlCharacters } from "node:util";
import * as z from "zod";
import { UserError } from "../../../src/programs/shared/cli.ts";
import { binPath, ROOT } from "../../../src/programs/shared/system.ts";
import { WRANGLER_ENVIRONMENT } from "../../../src/programs/stack/components/builds.ts";

/** Whatever takes an account at Cloudflare, all of it by wrangler. Who is logged in, wrangler knows: by its own login or CLOUDFLARE_API_TOKEN. */

export interface Target {
  /** Of the Worker, where it is another than wrangler.toml says. */
  name: string | undefined;
  /** Of the operator's own, instead of one at workers.dev. */
  domain: string | undefined;
}

const SecretList = z.array(z.object({ name: z.string() }));

export const secretNames = (output: string): string[] => SecretList.parse(JSON.parse(output)).map(({ name }) => name);

/** Names of the secrets that the Worker has; none where there is no such Worker yet. */
export async function listSecrets(target: Target): Promise<string[]> {
  const { code, stdout, stderr } = await wrangler(["secret", "list", "--format", "json", ...nameOf(target)]);
  if (code === 0) return secretNames(stdout);
  if (/Worker ".*" not found/.test(stderr)) return [];
  throw new UserError(`The secrets of the Worker cannot be listed: ${reason(stderr)}`);
}

/** Makes or changes these; others stay. Over standard input: arguments show in process lists. */
export async function putSecrets(target: Target, secrets: Record<string, string>): Promise<void> {
  const { code, stderr } = await wrangler(["secret", "bulk", ...nameOf(target)], JSON.stringify(secrets));
  if (code !== 0) throw new UserError(`The secrets cannot be put: ${reason(stderr)}`);
}

/** What wrangler prints goes to the console. */
export async function deployWorker(target: Target, vars: Record<string, string>): Promise<void> {
  const args = [
    ...["deploy", "--minify", ...nameOf(target)],
    ...(target.domain === undefined ? [] : ["--domain", target.domain]),
    ...Object.entries(vars).flatMap(([name, value]) => ["--var", `${name}:${value}`]),
  ];
  const child = spawn(binPath("wrangler"), args, {
    cwd: ROOT,
    stdio: ["ignore", "inherit", "inherit"],
    env: { ...process.env, ...WRANGLER_ENVIRONMENT },
  });
  const code = await new Promise((resolve) => child.once("close", resolve));
  if (code !== 0) throw new UserError("Nothing is deployed: wrangler says why.");
}

const nameOf = ({ name }: Target): string[] => (name === undefined ? [] : ["--name", name]);

/** The line in which wrangler says what is wrong. */
const reason = (stderr: string): string => /\[ERROR\] (.+)/.exec(stderr)?.[1] ?? stderr.trim().slice(0, 300);

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
