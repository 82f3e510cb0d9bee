import { readFileSync, readlinkSync } from "node:fs";
import { UserError } from "../shared/cli.ts";

/** A listening socket that somebody else holds, as systemd does for a .socket unit: connections wait in it while nobody serves it. */
export interface InheritedSocket {
  fd: number;
  port: number;
}

/** Where systemd puts the first one. */
const FIRST_FD = 3;
/** In the kernel's tables. */
const LISTENS = "0A";

/** The socket that we were started with, if any (sd_listen_fds(3)). LISTEN_PID names whom it is for: a child of npm does not get it. */
export function inheritedSocket(env: NodeJS.ProcessEnv): InheritedSocket | undefined {
  if (env.LISTEN_PID !== String(process.pid)) return undefined;
  if (env.LISTEN_FDS !== "1")
    throw new UserError(`One socket can be served, not ${env.LISTEN_FDS} (controller.socket).`);
  const port = listeningPort(FIRST_FD);
  if (port === undefined) throw new UserError("The socket that was handed over is none that listens on a TCP port.");
  return { fd: FIRST_FD, port };
}

/** As the kernel tells it: Node has no way to ask a socket that it is not going to serve. */
function listeningPort(fd: number): number | undefined {
  const inode = /^socket:\[(\d+)\]$/.exec(readlinkSync(`/proc/self/fd/${fd}`))?.[1];
  for (const table of ["tcp", "tcp6"]) {
    for (const line of readFileSync(`/proc/self/net/${table}`, "utf8").split("\n").slice(1)) {
      // Its number, its own address, the peer's, its state; the inode is the tenth field.
      const fields = line.trim().split(/\s+/);
      const [, address = "", , state] = fields;
      if (fields[9] === inode && state === LISTENS) return Number.parseInt(address.split(":")[1] ?? "", 16);
    }
  }
  return undefined;
}
