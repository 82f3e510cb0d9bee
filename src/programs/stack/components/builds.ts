import { spawn } from "node:child_process";
import { mkdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { UserError } from "../../shared/cli.ts";
import { binPath, ROOT, signalGroup } from "../../shared/system.ts";

/** Builds of the Worker and of the dashboard. */

export const WRANGLER_CONFIG = join(ROOT, "wrangler.toml");

/** Keeps wrangler from sending usage data, from decorating its output, and from writing a log file into the user's home at every start. */
export const WRANGLER_ENVIRONMENT = {
  WRANGLER_SEND_METRICS: "false",
  WRANGLER_HIDE_BANNER: "true",
  WRANGLER_WRITE_LOGS: "false",
  // The explorer shows and changes the data of the Durable Objects for every caller of the Worker's own port.
  X_LOCAL_EXPLORER: "false",
  CLOUDFLARE_CF_FETCH_ENABLED: "false",
  NO_COLOR: "1",
};

export interface BuildOptions {
  outdir: string;
  config?: string;
  /** Further options of wrangler. */
  options?: string[];
  signal?: AbortSignal | undefined;
}

/** Bundles the Worker of a wrangler configuration. */
export async function buildWorker({
  outdir,
  config = WRANGLER_CONFIG,
  options = [],
  signal,
}: BuildOptions): Promise<void> {
  rmSync(outdir, { recursive: true, force: true });
  mkdirSync(outdir, { recursive: true });
  const { main = "" } = await readWranglerConfig(config);
  // An abort that happened meanwhile would not kill a process that starts after it.
  signal?.throwIfAborted();
  const wrangler = spawn(
    process.execPath,
    [
      binPath("wrangler"),
      ...["deploy", main, "--config", config, "--dry-run", "--minify", "--outdir", outdir],
      ...options,
    ],
    {
      // With `--config`, wrangler keeps temporary files in the working directory. The source folder may be read-only.
      cwd: outdir,
      // A process group, because wrangler has child processes, which must end with it.
      detached: true,
      env: { ...process.env, ...WRANGLER_ENVIRONMENT },
    },
  );
  const kill = () => wrangler.pid !== undefined && signalGroup(wrangler.pid, "SIGKILL");
  signal?.addEventListener("abort", kill, { once: true });
  const output = Promise.all([text(wrangler.stdout), text(wrangler.stderr)]);
  const code = await new Promise((resolve) => wrangler.once("close", resolve));
  signal?.removeEventListener("abort", kill);
  if (code !== 0 && !signal?.aborted) throw new UserError(`The Worker cannot be built:\n${(await output).join("")}`);
}

export async function readWranglerConfig(config: string) {
  // Imported here because it takes two seconds, which `--help` and errors in the settings need not wait for.
  const { unstable_readConfig } = await import("wrangler");
  return unstable_readConfig({ config });
}

/** Builds the dashboard into a folder of the caller, because several products may run from one checkout. */
export async function buildDashboard(outDir: string): Promise<void> {
  // Imported here so that `--help` and errors in the settings need not wait for it.
  const { build } = await import("vite");
  await build({
    root: join(ROOT, "src/dashboard"),
    // The other loaders write a file into node_modules, which may be read-only.
    configLoader: "native",
    build: { outDir, emptyOutDir: true },
    logLevel: "error",
  });
}
