import { join } from "node:path";
import { build } from "vite";
import { ROOT } from "./project.ts";

/** Builds the dashboard's files into a folder of the caller's own: several products may run from one checkout. */
export async function buildDashboard(outDir: string): Promise<void> {
  await build({
    root: join(ROOT, "src/dashboard"),
    // Others write a file into node_modules, which may be read-only.
    configLoader: "native",
    build: { outDir, emptyOutDir: true },
    logLevel: "error",
  });
}
