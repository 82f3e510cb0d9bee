import { createServer } from "node:net";
import { print, UserError } from "../shared/cli.ts";
import type { WantedPort } from "../shared/settings.ts";

const ATTEMPTS = 100;

/** Returns the wanted port or, unless the user set it, the next free one. */
export async function claimPort(
  wanted: WantedPort,
  host: string,
  taken: ReadonlySet<number> = new Set(),
): Promise<number> {
  for (let port = wanted.number; port < Math.min(wanted.number + ATTEMPTS, 65_536); port++) {
    if (!taken.has(port) && (await tryPort(port, host)) !== undefined) {
      if (port !== wanted.number) print(`Port ${wanted.number} (${wanted.name}) is in use. Using ${port} instead.`);
      return port;
    }
    if (wanted.isExplicit) throw new UserError(`Port ${port} is in use. Set ${wanted.name} to another one.`);
  }
  const last = Math.min(wanted.number + ATTEMPTS, 65_536) - 1;
  throw new UserError(`All ports from ${wanted.number} to ${last} are in use. Set ${wanted.name} to a free one.`);
}

/** Returns any free port, for components that only the stack itself uses. */
export async function anyFreePort(): Promise<number> {
  const port = await tryPort(0, "127.0.0.1");
  if (port === undefined) throw new UserError("There is no free port on 127.0.0.1.");
  return port;
}

/** Returns the port if it is free. Port 0 stands for any free one. */
function tryPort(port: number, host: string): Promise<number | undefined> {
  return new Promise((resolve) => {
    const server = createServer();
    server.once("error", () => resolve(undefined));
    server.listen(port, host, () => {
      const address = server.address();
      server.close(() => resolve(typeof address === "object" ? address?.port : undefined));
    });
  });
}
