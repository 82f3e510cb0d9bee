import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { gzipSync } from "node:zlib";

/** What is uploaded, compressed. */
export function bundleBytes(buildDir: string): number {
  const shipped = readdirSync(buildDir).filter((file) => /\.(js|wasm)$/.test(file));
  return shipped.reduce((sum, file) => sum + gzipSync(readFileSync(join(buildDir, file))).length, 0);
}
