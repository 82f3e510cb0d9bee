import type { EmulatorReport } from "../../../schemas/emulator.ts";

/** What emulators say of a job, part by part. */
export interface PartReport {
  part: number;
  parts: number;
  state: EmulatorReport["state"];
  agents: number;
  online: number;
  samples: number;
  startedMs: number;
}

export interface JobProgress {
  /** Parts that an emulator has taken, of how many. */
  taken: number;
  parts: number;
  running: number;
  failed: number;
  /** Access points of the parts that were taken. */
  agents: number;
  online: number;
  samples: number;
  /** When the last of them began. */
  startedMs: number;
  isOver: boolean;
}

/** The latest word on every part, out of messages in their order. Nothing where no emulator has taken one yet. */
export function progressOf(items: readonly { data: unknown }[]): JobProgress | undefined {
  const latest = new Map<number, PartReport>();
  for (const { data } of items) {
    const report = reportOf(data);
    if (report !== undefined) latest.set(report.part, report);
  }
  const reports = [...latest.values()];
  const first = reports[0];
  if (first === undefined) return undefined;
  const sum = (of: (report: PartReport) => number) => reports.reduce((total, report) => total + of(report), 0);
  const parts = Math.max(first.parts, reports.length);
  const running = reports.filter(({ state }) => state === "running").length;
  return {
    taken: reports.length,
    parts,
    running,
    failed: reports.filter(({ state }) => state === "failed").length,
    agents: sum(({ agents }) => agents),
    online: sum(({ online }) => online),
    samples: sum(({ samples }) => samples),
    startedMs: Math.max(...reports.map(({ startedMs }) => startedMs)),
    isOver: reports.length === parts && running === 0,
  };
}

/** Anybody may run emulators: what is no report, or says less than ours do, must not break the page. */
function reportOf(data: unknown): PartReport | undefined {
  const { part, parts, state, agents, online, samples, started_at } = (data ?? {}) as Record<string, unknown>;
  if (typeof part !== "number" || (state !== "running" && state !== "done" && state !== "failed")) return undefined;
  return {
    part,
    parts: countIn(parts, 1),
    state,
    agents: countIn(agents, 0),
    online: countIn(online, 0),
    samples: countIn(samples, 0),
    startedMs: Date.parse(String(started_at)),
  };
}

const countIn = (value: unknown, otherwise: number): number => (typeof value === "number" ? value : otherwise);
