import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
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

/** Returns the resident memory of a process. */
export function residentMib(pid: number): number {
  const [, kib] = /^VmRSS:\s+(\d+) kB/m.exec(readFileSync(`/proc/${pid}/status`, "utf8")) ?? [];
  return (Number(kib) * 1024) / MIB;
}

/** Returns the compressed size of what is uploaded to Cloudflare. */
export function bundleBytes(buildDir: string): number {
  const shipped = readdirSync(buildDir).filter((file) => /\.(js|wasm)$/.test(file));
  return shipped.reduce((sum, file) => sum + gzipSync(readFileSync(join(buildDir, file))).length, 0);
}
