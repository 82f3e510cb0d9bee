import { execFile } from "node:child_process";
import { mkdirSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import workerd from "workerd";
import { unstable_readConfig as readWranglerConfig } from "wrangler";
import * as z from "zod";
import { Refused } from "./console.ts";
import { installed, ROOT } from "./project.ts";
import type { WorkerOptions } from "./stack.ts";
import type { Part } from "./supervisor.ts";
import { isNews, WRANGLER_ENVIRONMENT } from "./worker-dev.ts";

/** The Worker built once and run on plain workerd: no proxy in front of it, nothing that watches files. */
export async function productionWorkerPart({ host, port, dataDir, env }: WorkerOptions): Promise<Part> {
  const buildDir = join(dataDir, "build");
  const objectsDir = join(dataDir, "worker");
  mkdirSync(objectsDir, { recursive: true });
  await buildWorker(buildDir);
  const configFile = join(buildDir, "workerd.capnp");
  writeFileSync(
    configFile,
    workerdConfig({ address: `${host}:${port}`, buildDir, objectsDir, settings: Object.keys(env) }),
  );
  return {
    name: "worker",
    command: workerd.default,
    args: ["serve", configFile],
    env,
    ready: async () => (await fetch(`http://127.0.0.1:${port}/healthz`)).ok,
    shows: isNews,
    graceMs: 2_000,
  };
}

export async function buildWorker(outdir: string): Promise<void> {
  rmSync(outdir, { recursive: true, force: true });
  try {
    await promisify(execFile)(installed("wrangler"), ["deploy", "--dry-run", "--minify", "--outdir", outdir], {
      cwd: ROOT,
      env: { ...process.env, ...WRANGLER_ENVIRONMENT },
    });
  } catch (error) {
    const output = error as { stdout?: string; stderr?: string };
    throw new Refused(`The Worker cannot be built:\n${output.stdout ?? ""}${output.stderr ?? ""}`);
  }
}

const WranglerConfig = z.object({
  compatibility_date: z.string(),
  compatibility_flags: z.array(z.string()),
  durable_objects: z.object({ bindings: z.array(z.object({ name: z.string(), class_name: z.string() })) }),
});

interface WorkerdOptions {
  address: string;
  buildDir: string;
  objectsDir: string;
  /** Names of the environment variables that the Worker gets; their values stay in the environment. */
  settings: string[];
}

function workerdConfig({ address, buildDir, objectsDir, settings }: WorkerdOptions): string {
  const wrangler = WranglerConfig.parse(readWranglerConfig({ config: join(ROOT, "wrangler.toml") }));
  const objects = wrangler.durable_objects.bindings;
  const modules = [
    `(name = "worker.js", esModule = embed "worker.js")`,
    ...readdirSync(buildDir)
      .filter((file) => file.endsWith(".wasm"))
      .map((file) => `(name = ${text(`./${file}`)}, wasm = embed ${text(file)})`),
  ];
  const bindings = [
    ...settings.map((name) => `(name = ${text(name)}, fromEnvironment = ${text(name)})`),
    ...objects.map(({ name, class_name }) => `(name = ${text(name)}, durableObjectNamespace = ${text(class_name)})`),
  ];
  // The key names the folder on disk that holds the objects' data: it must never change.
  const namespaces = objects.map(
    ({ class_name }) => `(className = ${text(class_name)}, uniqueKey = ${text(class_name)}, enableSql = true)`,
  );
  return `using Workerd = import "/workerd/workerd.capnp";

const config :Workerd.Config = (
  services = [
    (name = "controller", worker = .controller),
    (name = "internet", network = (allow = ["public", "private"], tlsOptions = (trustBrowserCas = true))),
    (name = "objects", disk = (path = ${text(objectsDir)}, writable = true)),
  ],
  sockets = [(name = "http", address = ${text(address)}, http = (), service = "controller")],
);

const controller :Workerd.Worker = (
  modules = [
    ${modules.join(",\n    ")}
  ],
  compatibilityDate = ${text(wrangler.compatibility_date)},
  compatibilityFlags = [${wrangler.compatibility_flags.map(text).join(", ")}],
  bindings = [
    ${bindings.join(",\n    ")}
  ],
  globalOutbound = "internet",
  durableObjectNamespaces = [${namespaces.join(", ")}],
  durableObjectStorage = (localDisk = "objects"),
);
`;
}

const text = (value: string): string => JSON.stringify(value);
