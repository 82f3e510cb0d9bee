import { spawn } from "node:child_process";
import { rmSync } from "node:fs";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { UserError } from "../../shared/cli.ts";
import { binPath, ROOT } from "../../shared/system.ts";

/** Builds of the Worker and of the dashboard. */

export const WRANGLER_CONFIG = join(ROOT, "wrangler.toml");
export const WORKER_MAIN = join(ROOT, "src/worker.ts");

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

/**
 * Bundles a Worker for workerd into a folder. What the Worker imports on demand becomes a file of its own, which workerd evaluates when it is
 * first used.
 */
export async function buildWorker(main: string, outdir: string): Promise<void> {
  rmSync(outdir, { recursive: true, force: true });
  // Imported here so that `--help` and errors in the settings need not wait for it.
  const { build } = await import("esbuild");
  try {
    await build({
      entryPoints: [main],
      outdir,
      bundle: true,
      splitting: true,
      minify: true,
      format: "esm",
      target: "es2024",
      conditions: ["workerd", "worker", "browser"],
      external: ["cloudflare:*"],
      loader: { ".wasm": "copy" },
      absWorkingDir: ROOT,
      logLevel: "silent",
    });
  } catch (error) {
    throw new UserError(`The Worker cannot be built:\n${(error as Error).message}`);
  }
}

/** Bundles the Worker as Cloudflare gets it, in one file, without deploying it. */
export async function buildForCloudflare(outdir: string): Promise<void> {
  const wrangler = spawn(
    process.execPath,
    [binPath("wrangler"), ...["deploy", "--config", WRANGLER_CONFIG, "--dry-run", "--minify", "--outdir", outdir]],
    {
      // With `--config`, wrangler keeps temporary files in the working directory. The source folder may be read-only.
      cwd: outdir,
      env: { ...process.env, ...WRANGLER_ENVIRONMENT },
    },
  );
  const output = Promise.all([text(wrangler.stdout), text(wrangler.stderr)]);
  const code = await new Promise((resolve) => wrangler.once("close", resolve));
  if (code !== 0) throw new UserError(`The Worker cannot be built:\n${(await output).join("")}`);
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
