import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { ROOT } from "../../../src/programs/shared/system.ts";
import { buildDashboard, buildForCloudflare } from "../../../src/programs/stack/components/builds.ts";
import { bundleBytes } from "../../harness/usage.ts";
import type { Problem } from "./worker-settings.ts";

/** Limit of the smallest Cloudflare plan for a compressed Worker. */
const MAX_BYTES = 3 * 1024 * 1024;

/** Builds the dashboard and the Worker (`wrangler deploy --dry-run`). Returns the compressed size of the Worker. */
export async function checkBuild(): Promise<{ problems: Problem[]; bytes: number }> {
  const folder = mkdtempSync(join(tmpdir(), "deploy-"));
  try {
    await buildDashboard(join(ROOT, "dist/dashboard"));
    await buildForCloudflare(folder);
    const bytes = bundleBytes(folder);
    const isTooLarge = bytes > MAX_BYTES;
    return { bytes, problems: isTooLarge ? [{ area: "build", message: "The Worker is larger than 3 MiB gzip." }] : [] };
  } catch (error) {
    return { bytes: 0, problems: [{ area: "build", message: (error as Error).message }] };
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}
