import { join } from "node:path";
import { ROOT } from "../../shared/system.ts";

/** Builds the dashboard's files into a folder of the caller's own: several products may run from one checkout. */
export async function buildDashboard(outDir: string): Promise<void> {
  // Here and not at the top: whoever asks for help, or is refused, need not wait for it.
  const { build } = await import("vite");
  await build({
    root: join(ROOT, "src/dashboard"),
    // Others write a file into node_modules, which may be read-only.
    configLoader: "native",
    build: { outDir, emptyOutDir: true },
    logLevel: "error",
  });
}
