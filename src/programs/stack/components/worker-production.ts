import { mkdirSync, readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import workerd from "workerd";
import * as z from "zod";
import { removeEmptyObjects } from "../prune-objects.ts";
import type { Component } from "../supervisor.ts";
import type { WorkerOptions } from "../types.ts";
import { buildDashboard, buildWorker, readWranglerConfig, WORKER_MAIN, WRANGLER_CONFIG } from "./builds.ts";
import { isWorthShowing } from "./worker-dev.ts";

/** Builds the Worker once and runs it on plain workerd, without a proxy in front of it and without watching files. */
export async function productionWorkerComponent({
  host,
  port,
  socket,
  url,
  dataDir,
  env,
}: WorkerOptions): Promise<Component> {
  const buildDir = join(dataDir, "build");
  const objectsDir = join(dataDir, "worker");
  mkdirSync(objectsDir, { recursive: true });
  removeEmptyObjects(objectsDir);
  const pageDir = join(dataDir, "dashboard");
  await Promise.all([buildWorker(WORKER_MAIN, buildDir), buildDashboard(pageDir)]);
  const configFile = join(buildDir, "workerd.capnp");
  writeFileSync(
    configFile,
    await workerdConfig({
      address: host.includes(":") ? `[${host}]:${port}` : `${host}:${port}`,
      buildDir,
      objectsDir,
      pageDir,
      env,
    }),
  );
  return {
    name: "worker",
    command: workerd.default,
    args: ["serve", configFile, ...(socket === undefined ? [] : ["--socket-fd=http=3"])],
    env,
    ...(socket && { fd: socket.fd }),
    ready: async () => (await fetch(`${url}/healthz`)).ok,
    display: (line) => (isWorthShowing(line) ? line : undefined),
    graceMs: 2_000,
  };
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
  /** The folder with the files of the dashboard. */
  pageDir: string;
  /** The settings of the Worker. The configuration has their names only; the values stay in the environment of workerd. */
  env: Record<string, string>;
}

async function workerdConfig(options: WorkerdOptions): Promise<string> {
  const { address, buildDir, objectsDir, pageDir, env } = options;
  const wrangler = WranglerConfig.parse(await readWranglerConfig(WRANGLER_CONFIG));
  const objects = wrangler.durable_objects.bindings;
  const modules = [
    // First, because it is the main module.
    `(name = "worker.js", esModule = embed "worker.js")`,
    ...moduleFiles(buildDir).map((file) => {
      const kind = file.endsWith(".wasm") ? "wasm" : "esModule";
      return `(name = ${quoted(file)}, ${kind} = embed ${quoted(file)})`;
    }),
  ];
  const bindings = [
    `(name = ${quoted(wrangler.assets.binding)}, service = "page")`,
    `(name = "WEBHOOKS", service = "webhooks")`,
    ...Object.keys(env).map((name) => `(name = ${quoted(name)}, fromEnvironment = ${quoted(name)})`),
    ...objects.map(
      ({ name, class_name }) => `(name = ${quoted(name)}, durableObjectNamespace = ${quoted(class_name)})`,
    ),
  ];
  // `uniqueKey` is the name of the folder with the objects' data, so it must never change.
  const namespaces = objects.map(
    ({ class_name }) => `(className = ${quoted(class_name)}, uniqueKey = ${quoted(class_name)}, enableSql = true)`,
  );
  return `using Workerd = import "/workerd/workerd.capnp";

const config :Workerd.Config = (
  services = [
    (name = "controller", worker = .controller),
    ${networkServices(env).join(",\n    ")},
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

/**
 * Returns the network of the Worker itself and that of webhooks, whose addresses users choose. For these, workerd looks a name up once,
 * checks the address, and connects to exactly that one, so that a name server cannot lead a request to this machine or to a private network.
 *
 * Each network with TLS delays the start by 10 ms, in which it reads the certificates. So the Worker's own has TLS only if a setting is an
 * address with TLS.
 */
export const networkServices = (env: Record<string, string>): string[] => [
  networkService("internet", true, Object.values(env).some(isTlsAddress)),
  networkService("webhooks", env.WEBHOOK_NETWORKS === "private", true),
];

const isTlsAddress = (setting: string): boolean => /\b(https|wss|mqtts|libsql):\/\//i.test(setting);

const networkService = (name: string, reachesPrivate: boolean, hasTls: boolean): string =>
  `(name = ${quoted(name)}, network = (allow = [${reachesPrivate ? '"public", "private"' : '"public"'}]${hasTls ? ", tlsOptions = (trustBrowserCas = true)" : ""}))`;

const moduleFiles = (buildDir: string): string[] =>
  readdirSync(buildDir).filter((file) => /\.(js|wasm)$/.test(file) && file !== "worker.js");

const quoted = (value: string): string => JSON.stringify(value);
