import { readFileSync } from "node:fs";

/** Processes by id, told apart from later ones that got the same id. */
export interface ProcessMark {
  pid: number;
  /** When the kernel started it, in its own ticks; with the id this names one process for good. */
  startTicks: string;
}

export function markOf(pid: number): ProcessMark | undefined {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
    // The name in parentheses may hold spaces; the fields after it do not. The start time is the 22nd field of all.
    const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
    const startTicks = fields[19];
    return startTicks === undefined || fields[0] === "Z" ? undefined : { pid, startTicks };
  } catch {
    return undefined;
  }
}

export const isAlive = (mark: ProcessMark): boolean => markOf(mark.pid)?.startTicks === mark.startTicks;

/** Signals a whole process group; whether there was anyone to hear it. */
export function signalGroup(pid: number, signal: NodeJS.Signals): boolean {
  try {
    process.kill(-pid, signal);
    return true;
  } catch {
    return false;
  }
}
