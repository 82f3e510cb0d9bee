import { readdirSync, readFileSync, readlinkSync } from "node:fs";

/** The processes of this machine, from /proc. */

/** Returns the ids of all processes that have `NAME=value` in their environment. */
const pidsWith = (variable: string): string[] =>
  readdirSync("/proc").filter((entry) => {
    try {
      return /^\d+$/.test(entry) && readFileSync(`/proc/${entry}/environ`, "utf8").split("\0").includes(variable);
    } catch {
      return false;
    }
  });

/** Returns the command lines of all processes that have `NAME=value` in their environment. One that just ends has no command line. */
export const processesWith = (variable: string): string[] =>
  pidsWith(variable).flatMap((pid) => {
    try {
      return readFileSync(`/proc/${pid}/cmdline`, "utf8").replaceAll("\0", " ") || [];
    } catch {
      return [];
    }
  });

/** The state of a listening socket in /proc/net/tcp. */
const LISTEN = "0A";

/** Returns the TCP ports on which these processes listen. */
export function listeningPortsOf(variable: string): number[] {
  const sockets = new Set(
    pidsWith(variable).flatMap((pid) => {
      try {
        return readdirSync(`/proc/${pid}/fd`).map((fd) => readlinkSync(`/proc/${pid}/fd/${fd}`));
      } catch {
        return [];
      }
    }),
  );
  const rows = ["tcp", "tcp6"].flatMap((table) =>
    readFileSync(`/proc/net/${table}`, "utf8").trim().split("\n").slice(1),
  );
  return rows.flatMap((row) => {
    const [, local = "", , state, , , , , , inode] = row.trim().split(/\s+/);
    return state === LISTEN && sockets.has(`socket:[${inode}]`) ? [Number.parseInt(local.split(":")[1] ?? "", 16)] : [];
  });
}
