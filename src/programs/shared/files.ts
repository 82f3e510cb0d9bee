import { renameSync, rmSync, statSync, writeFileSync } from "node:fs";
import { UserError } from "./cli.ts";

/** Writes a file for its owner's eyes only, by way of another one: whoever reads it, or crashes meanwhile, finds it whole. */
export function writeWhole(file: string, text: string): void {
  const draft = `${file}.new`;
  rmSync(draft, { force: true });
  writeFileSync(draft, text, { mode: 0o600 });
  renameSync(draft, file);
}

/** What root writes there, the folder's user cannot read: its service would not start any more. */
export function refuseOthersFolder(path: string): void {
  const { uid } = statSync(path);
  if (uid === process.getuid?.()) return;
  throw new UserError(`${path} belongs to another user (${uid}). Run this as that one: sudo -u <user> npm run …`);
}
