import { join } from "node:path";
import { gzipSync } from "node:zlib";
import { build, type Rolldown } from "vite";
import { expect, it } from "vitest";
import { ROOT } from "../../../src/programs/shared/system.ts";

it("the dashboard is on the screen, with its map, after less than 150 KiB gzip", async () => {
  const built = await build({ root: join(ROOT, "src/dashboard"), build: { write: false }, logLevel: "error" });
  const { output } = [built].flat()[0] as Rolldown.RolldownOutput;
  const byName = new Map(output.map((file) => [file.fileName, file]));
  const needed = new Set<string>();
  const need = (name: string): void => {
    const file = byName.get(name);
    if (file === undefined || needed.has(name)) return;
    needed.add(name);
    if (file.type !== "chunk") return;
    for (const imported of [...file.imports, ...(file.viteMetadata?.importedCss ?? [])]) need(imported);
  };
  for (const file of output) {
    const isPage =
      file.type === "chunk" && (file.isEntry || file.facadeModuleId?.endsWith("/overview/overview-page.tsx"));
    if (isPage || /index\.html$|countries-110m|icon/.test(file.fileName)) need(file.fileName);
  }
  const bytes = [...needed].reduce((sum, name) => sum + gzipSync(contentOf(byName.get(name))).length, 0);
  // The page, its style, the overview's and the map's code, outlines.
  expect(needed.size).toBeGreaterThan(6);
  expect(bytes).toBeLessThan(150 * 1024);
});

function contentOf(file: Rolldown.OutputChunk | Rolldown.OutputAsset | undefined): string | Uint8Array {
  return file?.type === "chunk" ? file.code : (file?.source ?? "");
}
