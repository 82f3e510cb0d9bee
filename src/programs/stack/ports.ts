import { createServer } from "node:net";
import { print, UserError } from "../shared/cli.ts";
import type { WantedPort } from "../shared/settings.ts";

const ATTEMPTS = 100;
/**
 * Below the ports that the kernel gives to outgoing connections, usually 32,768 and up. Such a connection could take a port between the
 * choice and the start of the component.
 */
const INTERNAL_PORTS = { first: 10_000, count: 22_400 };
/** Each process begins at another place, so that two stacks that start at the same time do not choose the same port. */
let nextInternal = (process.pid * 32) % INTERNAL_PORTS.count;

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

/** Returns any free port of this machine, for components that only the stack itself uses. */
export async function anyFreePort(): Promise<number> {
  for (let attempts = 0; attempts < INTERNAL_PORTS.count; attempts++) {
    const port = INTERNAL_PORTS.first + nextInternal++;
    nextInternal %= INTERNAL_PORTS.count;
    if (await isFree(port, "127.0.0.1")) return port;
  }
  throw new UserError("There is no free port on 127.0.0.1.");
}

function isFree(port: number, host: string): Promise<boolean> {
  return new Promise((resolve) => {
    const server = createServer();
    server.once("error", () => resolve(false));
    server.listen(port, host, () => server.close(() => resolve(true)));
  });
}
