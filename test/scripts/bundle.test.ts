import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import { expect, it } from "vitest";
import { buildWorker } from "../../scripts/stack/worker-production.ts";

it("the Worker's bundle stays under 300 KiB gzip", async () => {
  const folder = mkdtempSync(join(tmpdir(), "bundle-"));
  try {
    await buildWorker(folder);
    const shipped = readdirSync(folder).filter((file) => /\.(js|wasm)$/.test(file));
    expect(shipped.length).toBeGreaterThan(1);
    const bytes = shipped.reduce((sum, file) => sum + gzipSync(readFileSync(join(folder, file))).length, 0);
    expect(bytes).toBeLessThan(300 * 1024);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
});
