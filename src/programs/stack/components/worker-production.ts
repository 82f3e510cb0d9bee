import { spawn } from "node:child_process";
import { mkdirSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import workerd from "workerd";
import * as z from "zod";
import { UserError } from "../../shared/cli.ts";
import { binPath, ROOT, signalGroup } from "../../shared/system.ts";
import { removeEmptyObjects } from "../prune-objects.ts";
import type { Component } from "../supervisor.ts";
import type { WorkerOptions } from "../types.ts";
import { buildDashboard } from "./dashboard-build.ts";
import { isNews, WRANGLER_ENVIRONMENT } from "./worker-dev.ts";

const WRANGLER_CONFIG = join(ROOT, "wrangler.toml");

/** The Worker built once and run on plain workerd: no proxy in front of it, nothing that watches files. */
export async function productionWorkerComponent({
  host,
  port,
  socket,
  url,
  signal,
  dataDir,
  env,
}: WorkerOptions): Promise<Component> {
  const buildDir = join(dataDir, "build");
  const objectsDir = join(dataDir, "worker");
  mkdirSync(objectsDir, { recursive: true });
  removeEmptyObjects(objectsDir);
  const pageDir = join(dataDir, "dashboard");
  // wrangler wants the folder to be there, and never looks into it: the two need not wait for each other.
  mkdirSync(pageDir, { recursive: true });
  await Promise.all([
    buildWorker({ outdir: buildDir, signal, options: ["--assets", pageDir] }),
    buildDashboard(pageDir),
  ]);
  const configFile = join(buildDir, "workerd.capnp");
  writeFileSync(
    configFile,
    await workerdConfig({
      address: host.includes(":") ? `[${host}]:${port}` : `${host}:${port}`,
      buildDir,
      objectsDir,
      pageDir,
      settings: Object.keys(env),
    }),
  );
  return {
    name: "worker",
    command: workerd.default,
    args: ["serve", configFile, ...(socket === undefined ? [] : ["--socket-fd=http=3"])],
    env,
    ...(socket && { fd: socket.fd }),
    ready: async () => (await fetch(`${url}/healthz`)).ok,
    display: (line) => (isNews(line) ? line : undefined),
    graceMs: 2_000,
  };
}

interface BuildOptions {
  outdir: string;
  config?: string;
  /** Without it functions keep their names. */
  minify?: boolean;
  /** Of wrangler's own, besides. */
  options?: string[];
  signal?: AbortSignal | undefined;
}

/** Bundles the Worker that a configuration of wrangler's names. */
export async function buildWorker({
  outdir,
  config = WRANGLER_CONFIG,
  minify = true,
  options = [],
  signal,
}: BuildOptions): Promise<void> {
  rmSync(outdir, { recursive: true, force: true });
  mkdirSync(outdir, { recursive: true });
  const { main = "" } = await readWranglerConfig(config);
  // A stop that came meanwhile would not end a process that starts after it.
  signal?.throwIfAborted();
  // A group of its own, since wrangler has children: all of them go when the stack is told to stop.
  const wrangler = spawn(
    process.execPath,
    [
      binPath("wrangler"),
      ...["deploy", main, "--config", config, "--dry-run", "--outdir", outdir],
      ...(minify ? ["--minify"] : []),
      ...options,
    ],
    {
      // Told its file, wrangler keeps what it needs for a while in the working directory. The sources may well be read-only.
      cwd: outdir,
      detached: true,
      env: { ...process.env, ...WRANGLER_ENVIRONMENT },
    },
  );
  const end = () => wrangler.pid !== undefined && signalGroup(wrangler.pid, "SIGKILL");
  signal?.addEventListener("abort", end, { once: true });
  const output = Promise.all([text(wrangler.stdout), text(wrangler.stderr)]);
  const code = await new Promise((resolve) => wrangler.once("close", resolve));
  signal?.removeEventListener("abort", end);
  if (code !== 0 && !signal?.aborted) throw new UserError(`The Worker cannot be built:\n${(await output).join("")}`);
}

async function readWranglerConfig(config: string) {
  // Here and not at the top: it takes two seconds, and whoever asks for help, or is refused, need not wait for it.
  const { unstable_readConfig } = await import("wrangler");
  return unstable_readConfig({ config });
}

const WranglerConfig = z.object({
  compatibility_date: z.string(),
  compatibility_flags: z.array(z.string()),
  assets: z.object({ binding: z.string() }),
  durable_objects: z.object({ bindings: z.array(z.object({ name: z.string(), class_name: z.string() })) }),
});

interface WorkerdOptions {
  address: string;
  buildDir: string;
  objectsDir: string;
  /** The files of the dashboard. */
  pageDir: string;
  /** Names of the environment variables that the Worker gets; their values stay in the environment. */
  settings: string[];
}

async function workerdConfig(options: WorkerdOptions): Promise<string> {
  const { address, buildDir, objectsDir, pageDir, settings } = options;
  const wrangler = WranglerConfig.parse(await readWranglerConfig(WRANGLER_CONFIG));
  const objects = wrangler.durable_objects.bindings;
  const modules = [
    `(name = "worker.js", esModule = embed "worker.js")`,
    ...readdirSync(buildDir)
      .filter((file) => file.endsWith(".wasm"))
      .map((file) => `(name = ${quoted(`./${file}`)}, wasm = embed ${quoted(file)})`),
  ];
  const bindings = [
    `(name = ${quoted(wrangler.assets.binding)}, service = "page")`,
    ...settings.map((name) => `(name = ${quoted(name)}, fromEnvironment = ${quoted(name)})`),
    ...objects.map(
      ({ name, class_name }) => `(name = ${quoted(name)}, durableObjectNamespace = ${quoted(class_name)})`,
    ),
  ];
  // The key names the folder on disk that holds the objects' data: it must never change.
  const namespaces = objects.map(
    ({ class_name }) => `(className = ${quoted(class_name)}, uniqueKey = ${quoted(class_name)}, enableSql = true)`,
  );
  return `using Workerd = import "/workerd/workerd.capnp";

const config :Workerd.Config = (
  services = [
    (name = "controller", worker = .controller),
    (name = "internet", network = (allow = ["public", "private"], tlsOptions = (trustBrowserCas = true))),
    (name = "objects", disk = (path = ${quoted(objectsDir)}, writable = true)),
    (name = "page", disk = (path = ${quoted(pageDir)})),
  ],
  sockets = [(name = "http", address = ${quoted(address)}, http = (), service = "controller")],
);

const controller :Workerd.Worker = (
  modules = [
    ${modules.join(",\n    ")}
  ],
  compatibilityDate = ${quoted(wrangler.compatibility_date)},
  compatibilityFlags = [${wrangler.compatibility_flags.map(quoted).join(", ")}],
  bindings = [
    ${bindings.join(",\n    ")}
  ],
  globalOutbound = "internet",
  durableObjectNamespaces = [${namespaces.join(", ")}],
  durableObjectStorage = (localDisk = "objects"),
);
`;
}

const quoted = (value: string): string => JSON.stringify(value);
