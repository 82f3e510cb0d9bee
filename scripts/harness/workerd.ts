import { spawn } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import workerd from "workerd";
import { unstable_readConfig as readWranglerConfig } from "wrangler";
import { ROOT } from "../../src/programs/shared/system.ts";
import { buildWorker } from "../../src/programs/stack/components/builds.ts";
import { anyFreePort } from "../../src/programs/stack/ports.ts";
import type { Supervisor } from "../../src/programs/stack/supervisor.ts";
import type { Product } from "./product.ts";

/** Further workerd processes for comparisons: the bare Worker, and copies of the product's Worker. */

/** The name of the bare Worker under its supervisor. */
export const BARE = "bare";

export const bareBuildDir = (folder: string): string => join(folder, "bare");
export const buildDirOf = (product: Product): string => join(product.dataDir, "build");

/** Runs the bare Worker on the same workerd, built in the same way as the product. Returns its URL. */
export async function runBareWorker(supervisor: Supervisor, folder: string, signal: AbortSignal): Promise<string> {
  const config = join(folder, "bare.json");
  const { compatibility_date } = readWranglerConfig({ config: join(ROOT, "wrangler.toml") });
  const main = fileURLToPath(new URL("bare-worker.js", import.meta.url));
  const durable_objects = { bindings: [{ name: "ECHO", class_name: "Echo" }] };
  const migrations = [{ tag: "v1", new_sqlite_classes: ["Echo"] }];
  const settings = { name: "bare", main, compatibility_date, keep_names: false, durable_objects, migrations };
  writeFileSync(config, JSON.stringify(settings));
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
  const ready = async () => (await fetch(url)).ok;
  await supervisor.start({ name: BARE, command: workerd.default, args: ["serve", configFile], ready });
  return url;
}

export interface SecondWorkerd {
  url: string;
  /** From the start of the process to its first response. */
  startedInMs: number;
  end(): Promise<void>;
}

export interface SecondWorkerdOptions {
  /** For its Durable Objects. */
  folder: string;
  /** The folder of a built Worker with its `workerd.capnp`. */
  buildDir: string;
  /** Further arguments for workerd. */
  args?: string[];
}

const STARTS_WITHIN_MS = 30_000;

/** Runs another workerd with the settings and stores of the product, but with its own port and Durable Objects. */
export async function runSecondWorkerd(product: Product, options: SecondWorkerdOptions): Promise<SecondWorkerd> {
  const { folder, buildDir, args = [] } = options;
  const port = await anyFreePort();
  const objects = mkdtempSync(join(folder, "objects-"));
  const url = `http://127.0.0.1:${port}`;
  const configFile = join(buildDir, "workerd.capnp");
  const startedMs = performance.now();
  const child = spawn(
    workerd.default,
    ["serve", configFile, `-shttp=127.0.0.1:${port}`, `-dobjects=${objects}`, ...args],
    { env: environmentOf(product.pidOf("worker")), stdio: "ignore" },
  );
  while (!(await responds(url))) {
    if (child.exitCode !== null || performance.now() - startedMs > STARTS_WITHIN_MS) {
      child.kill("SIGKILL");
      throw new Error("A second workerd could not be started.");
    }
    await sleep(1);
  }
  const startedInMs = performance.now() - startedMs;
  const end = async () => {
    const ended = new Promise((resolve) => child.once("exit", resolve));
    child.kill("SIGKILL");
    await ended;
  };
  return { url, startedInMs, end };
}

/** The service responds with 200 here, the bare Worker with 404. */
const responds = async (url: string): Promise<boolean> => {
  const response = await fetch(`${url}/healthz`).catch(() => undefined);
  await response?.arrayBuffer();
  return response !== undefined;
};

/** Reads the settings of the Worker, which are in its environment only. */
function environmentOf(pid: number): Record<string, string> {
  const lines = readFileSync(`/proc/${pid}/environ`, "utf8").split("\0").filter(Boolean);
  return Object.fromEntries(lines.map((line) => [line.slice(0, line.indexOf("=")), line.slice(line.indexOf("=") + 1)]));
}
