import { readFileSync, readlinkSync } from "node:fs";
import { UserError } from "../shared/cli.ts";

/** A listening socket that systemd holds for a .socket unit. Connections wait in it while the service restarts. */
export interface InheritedSocket {
  fd: number;
  port: number;
}

/** The descriptor of the first socket that systemd passes. */
const FIRST_FD = 3;
/** The state LISTEN in the kernel's socket tables. */
const LISTEN = "0A";

/**
 * Returns the socket that systemd passed to this process, if any (sd_listen_fds(3)). LISTEN_PID names the process, so a child of npm does
 * not get the socket.
 */
export function inheritedSocket(env: NodeJS.ProcessEnv): InheritedSocket | undefined {
  if (env.LISTEN_PID !== String(process.pid)) return undefined;
  if (env.LISTEN_FDS !== "1")
    throw new UserError(`controller.socket must have exactly one ListenStream, not ${env.LISTEN_FDS}.`);
  const port = listeningPort(FIRST_FD);
  if (port === undefined) throw new UserError("The socket of controller.socket does not listen on a TCP port.");
  return { fd: FIRST_FD, port };
}

/** Reads the port from the kernel's tables. Node cannot query a socket that it does not serve itself. */
function listeningPort(fd: number): number | undefined {
  const inode = /^socket:\[(\d+)\]$/.exec(readlinkSync(`/proc/self/fd/${fd}`))?.[1];
  for (const table of ["tcp", "tcp6"]) {
    for (const line of readFileSync(`/proc/self/net/${table}`, "utf8").split("\n").slice(1)) {
      // The fields are: number, local address, remote address, state, …; the inode is the tenth.
      const fields = line.trim().split(/\s+/);
      const [, address = "", , state] = fields;
      if (fields[9] === inode && state === LISTEN) return Number.parseInt(address.split(":")[1] ?? "", 16);
    }
  }
  return undefined;
}
