import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { ROOT } from "../../../src/programs/shared/system.ts";
import { buildDashboard, buildWorker } from "../../../src/programs/stack/components/builds.ts";
import { bundleBytes } from "../../harness/usage.ts";

/** The smallest plan takes so much of a Worker, packed. */
const MAX_BYTES = 3 * 1024 * 1024;

/** Builds the page, and has wrangler go through a deployment without one (`--dry-run`); how large the Worker is, packed. */
export async function tryBuild(): Promise<{ faults: string[]; bytes: number }> {
  const folder = mkdtempSync(join(tmpdir(), "deploy-"));
  try {
    await buildDashboard(join(ROOT, "dist/dashboard"));
    await buildWorker({ outdir: folder });
    const bytes = bundleBytes(folder);
    return { bytes, faults: bytes > MAX_BYTES ? ["The Worker is larger than 3 MiB gzip."] : [] };
  } catch (error) {
    return { bytes: 0, faults: [(error as Error).message] };
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}
