import { renameSync, rmSync, writeFileSync } from "node:fs";

/** Writes a file for its owner's eyes only, by way of another one: whoever reads it, or crashes meanwhile, finds it whole. */
export function writeWhole(file: string, text: string): void {
  const draft = `${file}.new`;
  rmSync(draft, { force: true });
  writeFileSync(draft, text, { mode: 0o600 });
  renameSync(draft, file);
}
