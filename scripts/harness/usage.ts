import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { gzipSync } from "node:zlib";
import type { Product } from "./product.ts";

/** CPU time, memory and sizes. */

/** Linux counts CPU time in hundredths of a second on every machine. */
const TICKS_PER_SECOND = 100;
const MIB = 1024 * 1024;

/** Returns the CPU time of a process so far. */
export function cpuSeconds(pid: number): number {
  const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
  // The name in parentheses may contain spaces; the fields after it do not.
  const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  return (Number(fields[11]) + Number(fields[12])) / TICKS_PER_SECOND;
}

/** Measures the CPU time that components use from now on. Returns a function that divides it by a number of operations. */
export function cpuOf(
  processes: Pick<Product, "pidOf">,
  components: readonly string[],
): (count: number) => Record<string, number> {
  const used = () => components.map((component) => cpuSeconds(processes.pidOf(component)));
  const before = used();
  return (count) => {
    const each = used().map((seconds, i) => (1e6 * (seconds - (before[i] ?? 0))) / Math.max(1, count));
    return Object.fromEntries(components.map((component, i) => [`CPU µs of ${component} each`, each[i] ?? 0]));
  };
}

const IDLE_WITHIN_S = 120;

/** Waits until a process uses less than a twentieth of a core for a second, but no longer than two minutes. */
export async function untilIdle(pid: number): Promise<void> {
  for (let second = 0; second < IDLE_WITHIN_S; second++) {
    const beforeS = cpuSeconds(pid);
    await sleep(1_000);
    if (cpuSeconds(pid) - beforeS < 0.05) return;
  }
}

/** Returns the resident memory of a process. */
export function residentMib(pid: number): number {
  const [, kib] = /^VmRSS:\s+(\d+) kB/m.exec(readFileSync(`/proc/${pid}/status`, "utf8")) ?? [];
  return (Number(kib) * 1024) / MIB;
}

/** Returns the compressed size of what is uploaded to Cloudflare. */
export function bundleBytes(buildDir: string): number {
  return gzipBytes(
    buildDir,
    readdirSync(buildDir).filter((file) => /\.(js|wasm)$/.test(file)),
  );
}

/** Returns the compressed size of what a Worker loads at its start: its main module and everything that is not imported on demand. */
export function startupBytes(buildDir: string): number {
  const loaded = new Set(["worker.js"]);
  for (const file of loaded) {
    if (file.endsWith(".wasm")) continue;
    // `import("…")` imports on demand.
    const imports = readFileSync(join(buildDir, file), "utf8").matchAll(/\b(?:from|import)"\.\/([^"]+)"/g);
    for (const [, imported = ""] of imports) loaded.add(imported);
  }
  return gzipBytes(buildDir, [...loaded]);
}

const gzipBytes = (folder: string, files: readonly string[]): number =>
  files.reduce((sum, file) => sum + gzipSync(readFileSync(join(folder, file))).length, 0);
