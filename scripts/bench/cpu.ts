import { readFileSync } from "node:fs";

/** Linux counts a process' time in hundredths of a second, whatever the machine. */
const TICKS_PER_SECOND = 100;

/** How much CPU time a process has taken so far, in seconds. */
export function cpuSeconds(pid: number): number {
  const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
  // The name, in brackets, may hold anything; what follows is split by blanks.
  const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  return (Number(fields[11]) + Number(fields[12])) / TICKS_PER_SECOND;
}
