import { readFileSync } from "node:fs";
import type { Product } from "./product.ts";

/** Linux counts a process' time in hundredths of a second, whatever the machine. */
const TICKS_PER_SECOND = 100;
const MIB = 1024 * 1024;

/** How much CPU time a process has taken so far, in seconds. */
export function cpuSeconds(pid: number): number {
  const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
  // The name, in brackets, may hold anything; what follows is split by blanks.
  const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  return (Number(fields[11]) + Number(fields[12])) / TICKS_PER_SECOND;
}

/** What some parts of the product spend from now on. */
export function cpuOf(product: Product, parts: readonly string[]) {
  const spent = () => parts.map((part) => cpuSeconds(product.pidOf(part)));
  const before = spent();
  return {
    per(count: number): Record<string, number> {
      const now = spent();
      return Object.fromEntries(
        parts.map((part, i) => [
          `CPU µs of ${part} each`,
          (1e6 * ((now[i] ?? 0) - (before[i] ?? 0))) / Math.max(1, count),
        ]),
      );
    },
  };
}

/** How much memory a process takes, in MiB. */
export function residentMib(pid: number): number {
  const [, kib] = /^VmRSS:\s+(\d+) kB/m.exec(readFileSync(`/proc/${pid}/status`, "utf8")) ?? [];
  return (Number(kib) * 1024) / MIB;
}

/** Looks at a process' memory every second until told to end. */
export function watchMemory(pid: number): { end(): number[] } {
  const samples = [residentMib(pid)];
  const timer = setInterval(() => samples.push(residentMib(pid)), 1_000);
  return {
    end() {
      clearInterval(timer);
      samples.push(residentMib(pid));
      return samples;
    },
  };
}

/** In how much of the time from now on somebody on this machine waited for a core, from 0 to 1; nothing where the kernel does not tell. */
export function watchShortage(): { end(): number | undefined } {
  const startedMs = performance.now();
  const before = waitedMs();
  return {
    end() {
      const now = waitedMs();
      return before === undefined || now === undefined ? undefined : (now - before) / (performance.now() - startedMs);
    },
  };
}

function waitedMs(): number | undefined {
  try {
    const [, totalUs] = /^some .*total=(\d+)/m.exec(readFileSync("/proc/pressure/cpu", "utf8")) ?? [];
    return Number(totalUs) / 1000;
  } catch {
    return undefined;
  }
}
