import { type ChildProcess, spawn } from "node:child_process";
import { randomUUID } from "node:crypto";
import { once } from "node:events";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { print } from "../../src/programs/shared/cli.ts";
import { unlessAborted } from "../../src/programs/shared/interruption.ts";
import { ROOT, signalGroup } from "../../src/programs/shared/system.ts";
import { anyFreePort } from "../../src/programs/stack/ports.ts";
import type { SocketHolder } from "./socket-holder.ts";

/** A start takes long on a busy machine. */
const START_TIMEOUT_MS = 300_000;

export interface RunOptions {
  /** The folder of the version to run. Defaults to this one. */
  cwd?: string;
  /** The listening socket that the product inherits. */
  socket?: SocketHolder | undefined;
  /** Aborts the start. */
  signal?: AbortSignal | undefined;
  /** Called with the output of the product. */
  onOutput?(text: string): void;
}

/** The product as users run it: `npm run dev` or `npm start`, in its own process group. */
export class Product {
  readonly url: string;
  readonly mqttPort: number;
  readonly mqttWsPort: number;
  readonly dataDir: string;
  readonly #child: ChildProcess;
  output = "";
  /** A variable that every process of this run inherits, so that all of them can be found. */
  readonly marker: string;

  private constructor(child: ChildProcess, marker: string, dataDir: string, ports: [number, number, number]) {
    this.#child = child;
    this.marker = marker;
    this.dataDir = dataDir;
    this.url = `http://127.0.0.1:${ports[0]}`;
    [, this.mqttPort, this.mqttWsPort] = ports;
  }

  static async run(
    script: "dev" | "start",
    dataDir: string,
    env: Record<string, string> = {},
    { cwd = ROOT, socket, signal, onOutput }: RunOptions = {},
  ): Promise<Product> {
    const portOf = (name: string) => (env[name] === undefined ? anyFreePort() : Number(env[name]));
    const port = socket?.port ?? portOf("PORT");
    const ports = await Promise.all([port, portOf("MQTT_PORT"), portOf("MQTT_WS_PORT")]);
    const runId = randomUUID();
    // With a socket, start it as the systemd unit does: npm does not pass sockets on.
    const [command = "", ...args] =
      socket === undefined
        ? ["npm", "run", script]
        : ["sh", "-c", `LISTEN_PID=$$ LISTEN_FDS=1 exec node_modules/.bin/node scripts/${script}.ts`];
    const child = spawn(command, args, {
      cwd,
      detached: true,
      stdio: ["ignore", "pipe", "pipe", ...(socket === undefined ? [] : [socket.fd])],
      env: {
        ...process.env,
        CONTROLLER_RUN: runId,
        PORT: String(ports[0]),
        MQTT_PORT: String(ports[1]),
        MQTT_WS_PORT: String(ports[2]),
        DATA_DIR: dataDir,
        ...env,
      },
    });
    const product = new Product(child, `CONTROLLER_RUN=${runId}`, dataDir, ports);
    collectOutput(child, (text) => {
      product.output += text;
      onOutput?.(text);
    });
    try {
      await product.says(/Ctrl-C stops everything/, START_TIMEOUT_MS, signal);
      return product;
    } catch (error) {
      await product.interrupt();
      throw error;
    }
  }

  get isRunning(): boolean {
    return this.#child.exitCode === null && this.#child.signalCode === null;
  }

  /** Waits until the product has printed something. */
  async says(pattern: RegExp, timeoutMs = 90_000, signal?: AbortSignal): Promise<void> {
    await until(() => {
      signal?.throwIfAborted();
      if (!this.isRunning) throw new Error(`The product ended:\n${this.output}`);
      return pattern.test(this.output);
    }, timeoutMs).catch((error: unknown) => {
      signal?.throwIfAborted();
      throw new Error(`Waiting for ${pattern}: ${error}\n${this.output}`);
    });
  }

  pidOf(component: string): number {
    const pid = this.#state.parts[component]?.pid;
    if (pid === undefined) throw new Error(`${component} does not run`);
    return pid;
  }

  /** The URLs of its components, by name. */
  get urls(): Record<string, string> {
    return this.#state.urls;
  }

  /** Returns one of the secrets that the product generated. */
  secret(name: string): string {
    return String(JSON.parse(readFileSync(join(this.dataDir, "secrets.json"), "utf8"))[name]);
  }

  get #state(): { parts: Record<string, { pid: number }>; urls: Record<string, string> } {
    return JSON.parse(readFileSync(join(this.dataDir, "stack.json"), "utf8"));
  }

  /** Sends Ctrl-C to the whole process group, as a terminal does, unless it has ended. Returns how long the end took. */
  async interrupt(): Promise<{ exitCode: number | null; tookMs: number }> {
    const startedMs = Date.now();
    if (this.isRunning && this.#child.pid !== undefined) signalGroup(this.#child.pid, "SIGINT");
    await until(() => !this.isRunning, 15_000);
    return { exitCode: this.#child.exitCode, tookMs: Date.now() - startedMs };
  }
}

/** Runs the product in a temporary folder for some work, and deletes it afterwards. */
export async function withProduct<T>(
  name: string,
  env: Record<string, string>,
  signal: AbortSignal | undefined,
  work: (product: Product, folder: string) => Promise<T>,
): Promise<T> {
  const folder = mkdtempSync(join(tmpdir(), `controller-${name}-`));
  let product: Product | undefined;
  try {
    print("Starting the product.");
    product = await Product.run("start", join(folder, "data"), env, { signal });
    return await (signal === undefined ? work(product, folder) : unlessAborted(work(product, folder), signal));
  } finally {
    await product?.interrupt();
    rmSync(folder, { recursive: true, force: true });
  }
}

/** Waits for a condition. Throws if it does not hold in time. */
export async function until(
  condition: () => boolean | Promise<boolean>,
  timeoutMs = 30_000,
  pollMs = 25,
): Promise<void> {
  for (const deadlineMs = Date.now() + timeoutMs; Date.now() < deadlineMs; await sleep(pollMs)) {
    if (await condition()) return;
  }
  throw new Error(`Not within ${timeoutMs} ms`);
}

/** Runs a command to its end, with `input` on its standard input. */
export async function run(
  command: string,
  args: string[],
  env: Record<string, string> = {},
  input = "",
  options: { cwd?: string; signal?: AbortSignal } = {},
): Promise<{ code: number | null; output: string }> {
  const child = spawn(command, args, { ...options, env: { ...process.env, ...env } });
  let output = "";
  collectOutput(child, (text) => {
    output += text;
  });
  child.stdin.end(input);
  const [code] = (await once(child, "close")) as [number | null];
  return { code, output };
}

function collectOutput({ stdout, stderr }: ChildProcess, onOutput: (text: string) => void): void {
  for (const stream of [stdout, stderr]) stream?.setEncoding("utf8").on("data", onOutput);
}
