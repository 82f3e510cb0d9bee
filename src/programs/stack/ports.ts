import { createServer } from "node:net";
import { print, UserError } from "../shared/cli.ts";
import type { WantedPort } from "../shared/settings.ts";

const TRIES = 100;

/** The wanted port, or, unless the user set it, the next free one. */
export async function claimPort(
  wanted: WantedPort,
  host: string,
  taken: ReadonlySet<number> = new Set(),
): Promise<number> {
  for (let port = wanted.number; port < Math.min(wanted.number + TRIES, 65_536); port++) {
    if (!taken.has(port) && (await listens(port, host)) !== undefined) {
      if (port !== wanted.number) print(`Port ${wanted.number} (${wanted.name}) is taken; using ${port}.`);
      return port;
    }
    if (wanted.explicit) throw new UserError(`Port ${port} (${wanted.name}) is taken. Choose another one, or free it.`);
  }
  throw new UserError(`No free port between ${wanted.number} and ${wanted.number + TRIES} (${wanted.name}).`);
}

/** Any free port, for parts that only the stack itself talks to. */
export async function anyFreePort(): Promise<number> {
  const port = await listens(0, "127.0.0.1");
  if (port === undefined) throw new UserError("No free port.");
  return port;
}

function listens(port: number, host: string): Promise<number | undefined> {
  return new Promise((resolve) => {
    const server = createServer();
    server.once("error", () => resolve(undefined));
    server.listen(port, host, () => {
      const address = server.address();
      server.close(() => resolve(typeof address === "object" ? address?.port : undefined));
    });
  });
}
