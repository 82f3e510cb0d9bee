import { randomInt } from "node:crypto";
import { createSocket, type Socket } from "node:dgram";
import { createServer } from "node:net";
import { print, UserError } from "../shared/cli.ts";
import type { WantedPort } from "../shared/settings.ts";

const ATTEMPTS = 100;
/**
 * Below the ports that the kernel gives to outgoing connections, usually 32,768 and up. Such a connection could take a port between the
 * choice and the start of the component.
 */
const INTERNAL_PORTS = { first: 10_000, count: 22_400 };

/** Returns the wanted port or, unless the user set it, the next free one. */
export async function claimPort(
  wanted: WantedPort,
  host: string,
  taken: ReadonlySet<number> = new Set(),
): Promise<number> {
  for (let port = wanted.number; port < Math.min(wanted.number + ATTEMPTS, 65_536); port++) {
    if (!taken.has(port) && (await isFree(port, host))) {
      if (port !== wanted.number) print(`Port ${wanted.number} (${wanted.name}) is in use. Using ${port} instead.`);
      return port;
    }
    if (wanted.isExplicit) throw new UserError(`Port ${port} is in use. Set ${wanted.name} to another one.`);
  }
  const last = Math.min(wanted.number + ATTEMPTS, 65_536) - 1;
  throw new UserError(`All ports from ${wanted.number} to ${last} are in use. Set ${wanted.name} to a free one.`);
}

/** Returns any free port, for components that only the stack itself uses. No process gets it again while this one runs. */
export async function anyFreePort({ first, count } = INTERNAL_PORTS): Promise<number> {
  const start = randomInt(count);
  for (let i = 0; i < count; i++) {
    const port = first + ((start + i) % count);
    const mark = await markPort(port);
    if (mark === undefined) continue;
    if (await isFree(port, "127.0.0.1")) return port;
    mark.close();
  }
  throw new UserError("There is no free port on 127.0.0.1.");
}

/**
 * Marks a port as chosen, although its component does not listen yet: binds the UDP port of that number, which no component uses, until this process ends.
 * Returns undefined if another choice has marked it.
 */
function markPort(port: number): Promise<Socket | undefined> {
  return new Promise((resolve) => {
    const mark = createSocket("udp4");
    mark.once("error", () => {
      mark.close();
      resolve(undefined);
    });
    mark.bind(port, "127.0.0.1", () => resolve(mark.unref()));
  });
}

function isFree(port: number, host: string): Promise<boolean> {
  return new Promise((resolve) => {
    const server = createServer();
    server.once("error", () => resolve(false));
    server.listen(port, host, () => server.close(() => resolve(true)));
  });
}
