import { accessSync, constants, mkdirSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import * as z from "zod";
import { print, UserError } from "../shared/cli.ts";
import { identifyProcess, isAlive, requireOwnFolder, signalGroup, writeFileAtomically } from "../shared/system.ts";

/** The stack's data folder: its contents, and the processes that use it. */

const SECRETS_FILE = "secrets.json";
/** Everything that the stack writes there. A reset deletes these entries and no others. */
const CONTENTS = [
  ...["sqld", "clickhouse", "broker", "worker", "emulator", "mail"],
  ...["build", "dashboard", "worker.env", SECRETS_FILE],
];
const STATE_FILE = "stack.json";
/** Marks a folder as a data folder. Without it, entries with common names such as `mail` or `build` may belong to another program. */
const MARKER_FILE = ".controller-data";

const Process = z.object({ pid: z.int(), startTicks: z.string() });
/** Stored under these names. `parts` are the components. */
const State = z.object({
  owner: Process,
  parts: z.record(z.string(), Process),
  urls: z.record(z.string(), z.string()),
});
type State = z.output<typeof State>;

export interface DataFolder {
  path: string;
  /** Records the running components, so that other commands find them and the next start can clean up after a crash. */
  record(pids: Record<string, number>, urls: Record<string, string>): void;
  release(): void;
}

export interface ResetOptions {
  /** Deletes all data of the stack. */
  reset: boolean;
  /** Keeps the keys during a reset: an external store still contains data that they encrypted. */
  keepSecrets?: boolean;
}

export function openDataFolder(path: string, { reset, keepSecrets = false }: ResetOptions): DataFolder {
  try {
    mkdirSync(path, { recursive: true, mode: 0o700 });
    accessSync(path, constants.W_OK);
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    throw new UserError(`Cannot write to ${path} (${code}). Set DATA_DIR to a writable folder.`);
  }
  requireOwnFolder(path);
  const entries = readdirSync(path);
  if (entries.length > 0 && !entries.includes(MARKER_FILE)) {
    throw new UserError(
      `${path} contains files of another program. Set DATA_DIR to a folder that is empty or does not exist.`,
    );
  }
  markFolder(path);
  const stateFile = join(path, STATE_FILE);
  const earlier = readState(stateFile);
  if (earlier !== undefined && isAlive(earlier.owner)) {
    throw new UserError(
      `Process ${earlier.owner.pid} already uses ${path}. Stop that process, or set DATA_DIR to another folder.`,
    );
  }
  for (const [name, component] of Object.entries(earlier?.parts ?? {})) {
    if (!isAlive(component)) continue;
    print(`Killing ${name} (process ${component.pid}), which an interrupted run left behind.`);
    signalGroup(component.pid, "SIGKILL");
  }
  rmSync(stateFile, { force: true });
  const kept = keepSecrets ? [SECRETS_FILE] : [];
  for (const entry of reset ? CONTENTS : []) {
    if (!kept.includes(entry)) rmSync(join(path, entry), { recursive: true, force: true });
  }

  const owner = identifyProcess(process.pid);
  if (owner === undefined) throw new UserError("This program needs Linux with /proc.");
  const folder: DataFolder = {
    path,
    record(pids, urls) {
      const parts = Object.entries(pids).flatMap(([name, pid]) => {
        const component = identifyProcess(pid);
        return component === undefined ? [] : [[name, component] as const];
      });
      const state: State = { owner, parts: Object.fromEntries(parts), urls };
      writeFileAtomically(stateFile, JSON.stringify(state, undefined, 2));
    },
    release: () => rmSync(stateFile, { force: true }),
  };
  folder.record({}, {});
  return folder;
}

/** Marks a folder as a data folder of the stack, whatever it contains. */
export const markFolder = (path: string): void =>
  writeFileAtomically(join(path, MARKER_FILE), "Data of a Multi-Access Network Controller.\n");

/** Returns the URLs of the stack that runs on a folder, or undefined if none runs. */
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
