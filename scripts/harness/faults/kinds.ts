import type { Damage } from "./bad-line.ts";
import type { Fault, Stage } from "./under-load.ts";
import type { Disk, Line, Part, World } from "./world.ts";

/** The faults, each by what it does to a part, to the line to it, or to its disk. */

const HELD_MS = 8_000;

/** Those that /readyz knows, and under which name. */
const READYZ_NAMES: Partial<Record<Part, string>> = {
  sqld: "libsql",
  clickhouse: "clickhouse",
  broker: "broker",
  passwords: "passwords",
};

type WithParts = Stage & Pick<World, "pidOf">;

/** SIGKILL; whoever started it starts it again. */
export const kill = (part: Part): Fault<WithParts> => {
  let pid: number;
  return {
    holdMs: 0,
    begin: (world) => {
      pid = world.pidOf(part);
      process.kill(pid, "SIGKILL");
    },
    end: () => {},
    isOver: (world) => world.pidOf(part) !== pid,
    promises: { exact: true, prompt: part !== "worker" },
  };
};

/** SIGSTOP for a while: its connections stay open, and nobody answers on them. */
export const stop = (part: Part, holdMs = HELD_MS): Fault<WithParts> => ({
  readyzName: READYZ_NAMES[part],
  holdMs,
  begin: (world) => void process.kill(world.pidOf(part), "SIGSTOP"),
  end: (world) => void process.kill(world.pidOf(part), "SIGCONT"),
  promises: { exact: true, prompt: part !== "worker" },
});

export const damage = (line: Line, kind: Damage): Fault<World> => ({
  readyzName: kind === "half-open" ? READYZ_NAMES[line] : undefined,
  holdMs: HELD_MS,
  begin: ({ lines }) => lines[line].begin(kind),
  end: ({ lines }) => lines[line].end(),
  promises: {
    // Nobody can tell a garbled digit in a question from the one that was meant, nor a garbled sample on its way to the bridge: that
    // takes TLS.
    exact: kind !== "garbled questions" && !(kind === "garbled answers" && line === "broker"),
    prompt: line !== "worker" && kind !== "slow",
  },
});

export const fill = (disk: Disk): Fault<World> => ({
  readyzName: disk === "worker" ? "objects" : READYZ_NAMES[disk],
  holdMs: HELD_MS,
  begin: ({ disks }) => disks.get(disk)?.fill(),
  end: ({ disks }) => disks.get(disk)?.free(),
  promises: { exact: true, prompt: true },
});
