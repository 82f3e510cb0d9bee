import type { EmulatorReport } from "../../../schemas/emulator.ts";

/** The report of an emulator about one part of a job. */
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
  /** How many parts emulators have started. */
  started: number;
  parts: number;
  running: number;
  failed: number;
  /** Access points of the started parts. */
  agents: number;
  online: number;
  samples: number;
  /** When the last part started. */
  startedMs: number;
  isFinished: boolean;
}

/** Sums up the latest report on each part. Returns undefined if no emulator has started a part. */
export function progressOf(items: readonly { data: unknown }[]): JobProgress | undefined {
  const latest = new Map<number, PartReport>();
  for (const { data } of items) {
    const report = reportOf(data);
    if (report !== undefined) latest.set(report.part, report);
  }
  const reports = [...latest.values()];
  const first = reports[0];
  if (first === undefined) return undefined;
  const sum = (countOf: (report: PartReport) => number) =>
    reports.reduce((total, report) => total + countOf(report), 0);
  const parts = Math.max(first.parts, reports.length);
  const running = reports.filter(({ state }) => state === "running").length;
  return {
    started: reports.length,
    parts,
    running,
    failed: reports.filter(({ state }) => state === "failed").length,
    agents: sum(({ agents }) => agents),
    online: sum(({ online }) => online),
    samples: sum(({ samples }) => samples),
    startedMs: Math.max(...reports.map(({ startedMs }) => startedMs)),
    isFinished: reports.length === parts && running === 0,
  };
}

/** Parses a report. Callback clients may post any JSON value, so an invalid or incomplete report must not break the page. */
function reportOf(data: unknown): PartReport | undefined {
  const { part, parts, state, agents, online, samples, started_at } = (data ?? {}) as Record<string, unknown>;
  if (typeof part !== "number" || (state !== "running" && state !== "done" && state !== "failed")) return undefined;
  return {
    part,
    parts: numberOr(parts, 1),
    state,
    agents: numberOr(agents, 0),
    online: numberOr(online, 0),
    samples: numberOr(samples, 0),
    startedMs: Date.parse(String(started_at)),
  };
}

const numberOr = (value: unknown, fallback: number): number => (typeof value === "number" ? value : fallback);
