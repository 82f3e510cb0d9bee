import { mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import * as z from "zod";
import { Refused, say } from "./console.ts";
import { isAlive, markOf, signalGroup } from "./processes.ts";

/** The stack's data folder: who uses it, and what is in it. */

/** All that the stack ever writes there. A reset takes these and nothing else, whatever folder DATA_DIR names. */
const CONTENTS = ["sqld", "clickhouse", "worker", "build", "mail", "secrets.json", "worker.env"];
const STATE_FILE = "stack.json";

const Mark = z.object({ pid: z.int(), startTicks: z.string() });
const State = z.object({ owner: Mark, parts: z.record(z.string(), Mark), urls: z.record(z.string(), z.string()) });
type State = z.output<typeof State>;

export interface DataFolder {
  path: string;
  /** Writes down what runs, so that other commands find it and a later start can clear up after a crash. */
  record(pids: Record<string, number>, urls: Record<string, string>): void;
  release(): void;
}

export function openDataFolder(path: string, reset: boolean): DataFolder {
  mkdirSync(path, { recursive: true });
  const stateFile = join(path, STATE_FILE);
  const earlier = readState(stateFile);
  if (earlier !== undefined && isAlive(earlier.owner)) {
    throw new Refused(
      `${path} is in use by process ${earlier.owner.pid}. Stop that one, or set DATA_DIR to another folder.`,
    );
  }
  for (const [name, mark] of Object.entries(earlier?.parts ?? {})) {
    if (!isAlive(mark)) continue;
    say(`Ending ${name} (process ${mark.pid}), left over from a run that was cut off.`);
    signalGroup(mark.pid, "SIGKILL");
  }
  rmSync(stateFile, { force: true });
  if (reset) for (const entry of CONTENTS) rmSync(join(path, entry), { recursive: true, force: true });

  const owner = markOf(process.pid);
  if (owner === undefined) throw new Refused("This needs Linux with /proc.");
  const folder: DataFolder = {
    path,
    record(pids, urls) {
      const parts = Object.entries(pids).flatMap(([name, pid]) => {
        const mark = markOf(pid);
        return mark === undefined ? [] : [[name, mark] as const];
      });
      const state: State = { owner, parts: Object.fromEntries(parts), urls };
      writeFileSync(stateFile, JSON.stringify(state, undefined, 2));
    },
    release: () => rmSync(stateFile, { force: true }),
  };
  folder.record({}, {});
  return folder;
}

/** Where the parts of a stack that runs on this folder are. */
export function readUrls(path: string): Record<string, string> | undefined {
  const state = readState(join(path, STATE_FILE));
  return state !== undefined && isAlive(state.owner) ? state.urls : undefined;
}

function readState(file: string): State | undefined {
  try {
    return State.parse(JSON.parse(readFileSync(file, "utf8")));
  } catch {
    return undefined;
  }
}
