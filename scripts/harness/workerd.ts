import { spawn } from "node:child_process";
import { mkdtempSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import workerd from "workerd";
import { buildWorker, readWranglerConfig, WRANGLER_CONFIG } from "../../src/programs/stack/components/builds.ts";
import { anyFreePort } from "../../src/programs/stack/ports.ts";
import type { Product } from "./product.ts";

/** Further workerd processes for comparisons: the bare Worker, and copies of the product's Worker. */

/** Builds the bare Worker in the same way as the product. Returns the folder of the build. */
export async function buildBareWorker(folder: string): Promise<string> {
  const buildDir = join(folder, "bare");
  const { compatibility_date } = await readWranglerConfig(WRANGLER_CONFIG);
  const main = fileURLToPath(new URL("bare-worker.js", import.meta.url));
  await buildWorker(main, buildDir);
  writeFileSync(
    join(buildDir, "workerd.capnp"),
    `using Workerd = import "/workerd/workerd.capnp";
const config :Workerd.Config = (
  services = [(name = "bare", worker = .bare), (name = "objects", disk = (writable = true))],
  sockets = [(name = "http", http = (), service = "bare")],
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
  return buildDir;
}

export interface Workerd {
  url: string;
  pid: number;
  /** From the start of the process to its first response. */
  startedInMs: number;
  end(): Promise<void>;
}

const STARTS_WITHIN_MS = 30_000;

/** Runs a built Worker with the settings and stores of the product, but with its own port, and with its own Durable Objects in `folder`. */
export async function startWorkerd(product: Product, buildDir: string, folder: string): Promise<Workerd> {
  const port = await anyFreePort();
  const objects = mkdtempSync(join(folder, "objects-"));
  const url = `http://127.0.0.1:${port}`;
  const args = ["serve", join(buildDir, "workerd.capnp"), `-shttp=127.0.0.1:${port}`, `-dobjects=${objects}`];
  const startedMs = performance.now();
  const child = spawn(workerd.default, args, { env: environmentOf(product.pidOf("worker")), stdio: "ignore" });
  const ended = new Promise((resolve) => child.once("exit", resolve));
  const end = async (): Promise<void> => {
    child.kill("SIGKILL");
    await ended;
  };
  while (!(await responds(url))) {
    if (child.exitCode !== null || performance.now() - startedMs > STARTS_WITHIN_MS) {
      await end();
      throw new Error("A second workerd could not be started.");
    }
    await sleep(1);
  }
  return { url, pid: child.pid ?? 0, startedInMs: performance.now() - startedMs, end };
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
