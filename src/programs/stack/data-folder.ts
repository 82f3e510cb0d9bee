import { accessSync, constants, mkdirSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import * as z from "zod";
import { print, UserError } from "../shared/cli.ts";
import { identifyProcess, isAlive, requireOwnFolder, signalGroup, writeFileAtomically } from "../shared/system.ts";

/** The stack's data folder: who uses it, and what is in it. */

const SECRETS_FILE = "secrets.json";
/** All that the stack ever writes there; a reset takes these and nothing else. */
const CONTENTS = [
  ...["sqld", "clickhouse", "broker", "worker", "emulator", "mail"],
  ...["build", "dashboard", "worker.env", SECRETS_FILE],
];
const STATE_FILE = "stack.json";
/** Says that a folder is ours. Without it, names as common as `mail` and `build` might be somebody else's. */
const MARK_FILE = ".controller-data";

const Mark = z.object({ pid: z.int(), startTicks: z.string() });
const State = z.object({ owner: Mark, parts: z.record(z.string(), Mark), urls: z.record(z.string(), z.string()) });
type State = z.output<typeof State>;

export interface DataFolder {
  path: string;
  /** Writes down what runs, so that other commands find it and a later start can clear up after a crash. */
  record(pids: Record<string, number>, urls: Record<string, string>): void;
  release(): void;
}

export interface ResetOptions {
  /** Start anew. */
  reset: boolean;
  /** Keep the keys even so: what they encrypted is in a store that is not reset. */
  keepSecrets?: boolean;
}

export function openDataFolder(path: string, { reset, keepSecrets = false }: ResetOptions): DataFolder {
  try {
    mkdirSync(path, { recursive: true, mode: 0o700 });
    accessSync(path, constants.W_OK);
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    throw new UserError(`${path} cannot be written to (${code}). Set DATA_DIR to a folder that can.`);
  }
  requireOwnFolder(path);
  const entries = readdirSync(path);
  if (entries.length > 0 && !entries.includes(MARK_FILE)) {
    throw new UserError(`${path} holds other things. Set DATA_DIR to a folder that is empty or does not exist.`);
  }
  markFolder(path);
  const stateFile = join(path, STATE_FILE);
  const earlier = readState(stateFile);
  if (earlier !== undefined && isAlive(earlier.owner)) {
    throw new UserError(
      `${path} is in use by process ${earlier.owner.pid}. Stop that one, or set DATA_DIR to another folder.`,
    );
  }
  for (const [name, mark] of Object.entries(earlier?.parts ?? {})) {
    if (!isAlive(mark)) continue;
    print(`Ending ${name} (process ${mark.pid}), left over from a run that was cut off.`);
    signalGroup(mark.pid, "SIGKILL");
  }
  rmSync(stateFile, { force: true });
  const kept = keepSecrets ? [SECRETS_FILE] : [];
  for (const entry of reset ? CONTENTS : []) {
    if (!kept.includes(entry)) rmSync(join(path, entry), { recursive: true, force: true });
  }

  const owner = identifyProcess(process.pid);
  if (owner === undefined) throw new UserError("This needs Linux with /proc.");
  const folder: DataFolder = {
    path,
    record(pids, urls) {
      const parts = Object.entries(pids).flatMap(([name, pid]) => {
        const mark = identifyProcess(pid);
        return mark === undefined ? [] : [[name, mark] as const];
      });
      const state: State = { owner, parts: Object.fromEntries(parts), urls };
      writeFileAtomically(stateFile, JSON.stringify(state, undefined, 2));
    },
    release: () => rmSync(stateFile, { force: true }),
  };
  folder.record({}, {});
  return folder;
}

/** Says that the stack may use a folder, whatever is in it. */
export const markFolder = (path: string): void =>
  writeFileAtomically(join(path, MARK_FILE), "Data of a Multi-Access Network Controller.\n");

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
