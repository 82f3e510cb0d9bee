import { execFile } from "node:child_process";
import { readFileSync, renameSync, rmSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { print, UserError } from "./cli.ts";

/** Paths, files and processes of this machine. */

/** The root folder of the project. */
export const ROOT = join(import.meta.dirname, "../../../");

/** Returns the path of a command that an installed package provides. */
export const binPath = (command: string): string => join(ROOT, "node_modules/.bin", command);

/** Writes a file that only its owner can read. Replaces the file by a rename, so that neither a reader nor a crash finds half of it. */
export function writeFileAtomically(file: string, text: string): void {
  const draft = `${file}.new`;
  rmSync(draft, { force: true });
  writeFileSync(draft, text, { mode: 0o600 });
  renameSync(draft, file);
}

/** Throws if a folder belongs to another user. That user's service could not read a file that root writes there, and would not start. */
export function requireOwnFolder(path: string): void {
  const { uid } = statSync(path);
  if (uid === process.getuid?.()) return;
  throw new UserError(`${path} belongs to another user (${uid}). Run this as that user: sudo -u <user> npm run …`);
}

/** Identifies one process, even if the kernel gives its id to a later process. */
export interface ProcessIdentity {
  pid: number;
  /** Its start time, in clock ticks of the kernel. */
  startTicks: string;
}

/** Returns undefined if the process does not run. */
export function identifyProcess(pid: number): ProcessIdentity | undefined {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
    // The name in parentheses may contain spaces; the fields after it do not. The start time is the 22nd field of the line.
    const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
    const startTicks = fields[19];
    return startTicks === undefined || fields[0] === "Z" ? undefined : { pid, startTicks };
  } catch {
    return undefined;
  }
}

export const isAlive = (identity: ProcessIdentity): boolean =>
  identifyProcess(identity.pid)?.startTicks === identity.startTicks;

/** Sends a signal to a process group. Returns false if the group does not exist. */
export function signalGroup(pid: number, signal: NodeJS.Signals): boolean {
  try {
    process.kill(-pid, signal);
    return true;
  } catch {
    return false;
  }
}

/** Tells systemd that the service is ready, if systemd waits for it (`Type=notify`). Node cannot write to systemd's socket itself. */
export function notifyReady(): void {
  if (process.env.NOTIFY_SOCKET === undefined) return;
  execFile("systemd-notify", ["--ready"], (error) => {
    if (error !== null) print(`systemd was not notified that the service is ready: ${error.message}`);
  });
}
