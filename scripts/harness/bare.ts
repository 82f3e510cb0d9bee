import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import workerd from "workerd";
import { unstable_readConfig as readWranglerConfig } from "wrangler";
import { ROOT } from "../../src/programs/shared/system.ts";
import { buildWorker } from "../../src/programs/stack/components/worker-production.ts";
import { anyFreePort } from "../../src/programs/stack/ports.ts";
import type { Supervisor } from "../../src/programs/stack/supervisor.ts";

/** The part's name under its supervisor. */
export const BARE = "bare";

/** Where it is built. */
export const bareBuildDir = (folder: string): string => join(folder, "bare");

/** Runs the bare Worker on the same workerd, in the same form as the product; where it is. */
export async function runBareWorker(supervisor: Supervisor, folder: string, signal: AbortSignal): Promise<string> {
  const config = join(folder, "bare.json");
  // The same as the product's.
  const { compatibility_date } = readWranglerConfig({ config: join(ROOT, "wrangler.toml") });
  const main = fileURLToPath(new URL("bare-worker.js", import.meta.url));
  writeFileSync(
    config,
    JSON.stringify({
      name: "bare",
      main,
      compatibility_date,
      keep_names: false,
      durable_objects: { bindings: [{ name: "ECHO", class_name: "Echo" }] },
      migrations: [{ tag: "v1", new_sqlite_classes: ["Echo"] }],
    }),
  );
  const buildDir = bareBuildDir(folder);
  const objectsDir = join(folder, "bare-objects");
  mkdirSync(objectsDir);
  await buildWorker({ outdir: buildDir, config, signal });
  const port = await anyFreePort();
  const url = `http://127.0.0.1:${port}`;
  const configFile = join(buildDir, "workerd.capnp");
  writeFileSync(
    configFile,
    `using Workerd = import "/workerd/workerd.capnp";
const config :Workerd.Config = (
  services = [
    (name = "bare", worker = .bare),
    (name = "objects", disk = (path = ${JSON.stringify(objectsDir)}, writable = true)),
  ],
  sockets = [(name = "http", address = "127.0.0.1:${port}", http = (), service = "bare")],
);
const bare :Workerd.Worker = (
  modules = [(name = "bare-worker.js", esModule = embed "bare-worker.js")],
  compatibilityDate = "${compatibility_date}",
  bindings = [(name = "ECHO", durableObjectNamespace = "Echo")],
  durableObjectNamespaces = [(className = "Echo", uniqueKey = "Echo", enableSql = true)],
  durableObjectStorage = (localDisk = "objects"),
);
`,
  );
  await supervisor.start({
    name: BARE,
    command: workerd.default,
    args: ["serve", configFile],
    ready: async () => (await fetch(url)).ok,
  });
  return url;
}
