import type { AgentStore } from "../accounts/agent-store.ts";
import { type Actor, allowOnAgent } from "../auth/permissions.ts";
import { Invalid, NotAllowed } from "../errors.ts";
import type { AgentReport, ReportAnswer } from "../schemas/telemetry.ts";
import { countValues, type Payload, type Rejection, type Sample, toSample } from "./samples.ts";
import type { Shards } from "./shards.ts";

/** What agents report: their configuration, their place, and their telemetry. */
export type Report = (actor: Actor, report: AgentReport) => Promise<ReportAnswer>;

/** Clocks differ; a sample from further ahead than this would stay the newest for too long. */
const MAX_AHEAD_MS = 5 * 60_000;

interface Timed {
  tsMs: number;
  payload: Payload;
  /** Where the time stood in the body. */
  loc: (string | number)[];
}

export function createReport(agents: AgentStore, shards: Shards, now: () => number = Date.now): Report {
  return async (actor, report) => {
    const apId = actor.name;
    allowOnAgent(actor, "telemetry.report", apId);
    if (report.ap_id !== undefined && report.ap_id !== apId) throw new NotAllowed();
    const timed = samplesOf(report, now());
    refuseFuture(timed, now());

    const { configuration, geolocation } = report;
    if (configuration !== undefined || geolocation !== undefined) {
      const patch = { ...configuration, ...(geolocation !== undefined && { geolocation }) };
      await agents.mergeConfiguration(apId, patch, actor);
    }
    const samples: Sample[] = [];
    const rejected: Rejection[] = [];
    for (const { tsMs, payload } of timed) {
      const parsed = toSample(tsMs, payload);
      rejected.push(...parsed.rejected);
      if (countValues(parsed.sample) > 0) samples.push(parsed.sample);
    }
    if (samples.length > 0) await shards.append(apId, samples);
    const accepted = samples.reduce((sum, sample) => sum + countValues(sample), 0);
    return { status: "success", detail: `${accepted} values stored`, accepted, rejected };
  };
}

function samplesOf(report: AgentReport, nowMs: number): Timed[] {
  const { ap_id: _, ts, configuration, geolocation, payload, samples, ...rest } = report;
  const tsMs = ts ?? nowMs;
  const isFree = [configuration, geolocation, payload, samples].every((member) => member === undefined);
  const single = isFree ? rest : payload;
  return [
    ...(single === undefined ? [] : [{ tsMs, payload: single, loc: ["body", "ts"] }]),
    ...(samples ?? []).map((sample, i) => ({
      tsMs: sample.ts,
      payload: sample.payload,
      loc: ["body", "samples", i, "ts"],
    })),
  ];
}

function refuseFuture(timed: readonly Timed[], nowMs: number): void {
  const msg = "Value error, a sample must not lie more than 5 minutes in the future";
  const items = timed
    .filter(({ tsMs }) => tsMs > nowMs + MAX_AHEAD_MS)
    .map(({ loc }) => ({ loc, msg, type: "value_error" }));
  if (items.length > 0) throw new Invalid(items);
}
