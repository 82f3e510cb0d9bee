import { type ChildProcess, spawn } from "node:child_process";
import { mkdtempSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import workerd from "workerd";
import { anyFreePort } from "../../src/programs/stack/ports.ts";
import type { Product } from "./product.ts";

/** Another workerd beside a product that runs: with its settings and stores, but a port and Durable Objects of its own. */
export interface Twin {
  url: string;
  /** From the start of the process to its first answer. */
  startedInMs: number;
  end(): Promise<void>;
}

export interface TwinOptions {
  /** Where its objects may be kept. */
  folder: string;
  /** What it runs: a Worker that was built with its `workerd.capnp`. */
  buildDir: string;
  /** Of workerd's own, besides. */
  args?: string[];
}

const STARTS_WITHIN_MS = 30_000;

/** What the product itself runs. */
export const buildDirOf = (product: Product): string => join(product.dataDir, "build");

export async function runTwin(product: Product, { folder, buildDir, args = [] }: TwinOptions): Promise<Twin> {
  const port = await anyFreePort();
  const objects = mkdtempSync(join(folder, "twin-"));
  const startedMs = performance.now();
  const child = spawn(
    workerd.default,
    ["serve", join(buildDir, "workerd.capnp"), `-shttp=127.0.0.1:${port}`, `-dobjects=${objects}`, ...args],
    { env: environmentOf(product.pidOf("worker")), stdio: "ignore" },
  );
  const url = `http://127.0.0.1:${port}`;
  while (!(await answers(url))) {
    if (child.exitCode !== null || performance.now() - startedMs > STARTS_WITHIN_MS) {
      child.kill("SIGKILL");
      throw new Error("Another workerd could not be started.");
    }
    await sleep(1);
  }
  return { url, startedInMs: performance.now() - startedMs, end: () => end(child) };
}

const answers = async (url: string): Promise<boolean> => {
  // The service says 200 here, the bare Worker 404.
  const response = await fetch(`${url}/healthz`).catch(() => undefined);
  await response?.arrayBuffer();
  return response !== undefined;
};

/** Settings are in the environment, and nowhere else. */
function environmentOf(pid: number): Record<string, string> {
  const lines = readFileSync(`/proc/${pid}/environ`, "utf8").split("\0").filter(Boolean);
  return Object.fromEntries(lines.map((line) => [line.slice(0, line.indexOf("=")), line.slice(line.indexOf("=") + 1)]));
}

async function end(child: ChildProcess): Promise<void> {
  const ended = new Promise((resolve) => child.once("exit", resolve));
  child.kill("SIGKILL");
  await ended;
}
