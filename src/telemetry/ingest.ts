import type * as z from "zod";
import type { AgentStore } from "../accounts/agents/agent-store.ts";
import type { Actor } from "../auth/identity.ts";
import { authorize, authorizeAgent } from "../auth/permissions.ts";
import { DomainError, Invalid, NotAllowed, NotFound, Unavailable } from "../lib/errors.ts";
import { parse, toValidationItems } from "../lib/field-errors.ts";
import { describeError, log } from "../lib/log.ts";
import { TtlCache } from "../lib/ttl-cache.ts";
import { isEmulated } from "../schemas/agent.ts";
import { CommandResult } from "../schemas/job.ts";
import type { Protocol } from "../schemas/metrics.ts";
import { AgentReport, type Delivered, type Delivery, type ReportResponse } from "../schemas/telemetry.ts";
import {
  addValue,
  countValues,
  Flattener,
  MAX_AHEAD_MS,
  type Payload,
  type Rejection,
  type Sample,
  type Source,
} from "./samples.ts";
import type { ShardClient } from "./shard/shard-client.ts";
import type { AgentSample } from "./store/telemetry-store.ts";

/** Accepts the reports of agents: configuration, geolocation and telemetry. */
export interface Ingest {
  /** Ingests a report that an agent posts about itself. */
  ingestReport(actor: Actor, report: AgentReport): Promise<ReportResponse>;
  /** Ingests messages that a bridge received from the broker. An invalid message does not affect the others. */
  ingestBatch(actor: Actor, delivery: Delivery): Promise<Delivered>;
  /** Ingests values of many agents. The caller has authorized the actor to write for them. */
  ingestValues(groups: readonly AgentValues[], source: Source): Promise<IngestedValues>;
}

/** Values of one agent at one time. */
export interface AgentValues {
  apId: string;
  /** Undefined: the time of receipt. */
  tsMs: number | undefined;
  values: FieldValue[];
}

export interface FieldValue {
  field: string;
  value: number | string;
  /** Where the value comes from, for the rejection. */
  origin?: number | undefined;
}

export interface IngestedValues {
  accepted: number;
  rejected: (Rejection & Pick<FieldValue, "origin">)[];
}

const DAY_MS = 86_400_000;
const AGENT_CACHE_MS = 5_000;
const MAX_CACHED_AGENTS = 10_000;

export function createIngest(
  agents: AgentStore,
  shards: Pick<ShardClient, "append">,
  acceptCommandResult: (apId: string, result: CommandResult, requestId: string) => Promise<void>,
  telemetryDays: number,
  now: () => number = Date.now,
): Ingest {
  const agentCache = new TtlCache<true>({ maxEntries: MAX_CACHED_AGENTS, now });
  /** Returns the agents that exist, with one query at most. */
  const existingAgents = async (apIds: readonly string[]): Promise<Set<string>> => {
    const [existing, uncached] = [new Set<string>(), new Set<string>()];
    for (const apId of apIds) (agentCache.get(apId) ? existing : uncached).add(apId);
    for (const apId of uncached.size === 0 ? [] : await agents.existing([...uncached])) {
      agentCache.set(apId, true, now() + AGENT_CACHE_MS);
      existing.add(apId);
    }
    return existing;
  };

  /** Validates a report and stores its configuration. Returns its samples, which are not committed yet. */
  const parseReport = async (
    apId: string,
    report: AgentReport,
    receivedMs: number,
    actor: Actor,
    protocol: Protocol,
  ): Promise<ParsedReport> => {
    if (report.ap_id !== undefined && report.ap_id !== apId) throw new NotAllowed();
    const timed = timedPayloads(report, receivedMs);
    rejectFuture(timed, now());
    const { configuration, geolocation } = report;
    if (configuration !== undefined || geolocation !== undefined) {
      const patch = { ...configuration, ...(geolocation !== undefined && { geolocation }) };
      await agents.mergeConfiguration(apId, patch, actor);
    }
    const flattener = new Flattener();
    const samples: AgentSample[] = [];
    const rejected: Rejection[] = [];
    const oldestMs = now() - telemetryDays * DAY_MS;
    for (const { tsMs, payload, loc } of timed) {
      // The next clean-up would delete it, and every week that an insert touches costs a ClickHouse part.
      if (tsMs < oldestMs) {
        rejected.push({ field: loc.slice(1).join("."), reason: `is more than ${telemetryDays} days old` });
        continue;
      }
      const parsed = flattener.toSample(tsMs, payload);
      for (const rejection of parsed.rejected) rejected.push(rejection);
      if (countValues(parsed.sample) > 0) samples.push({ apId, receivedMs, ...parsed.sample });
    }
    const accepted = samples.reduce((sum, sample) => sum + countValues(sample), 0);
    // A sample without values only records the time of receipt: the agent is online.
    if (samples.length === 0) samples.push({ apId, receivedMs, tsMs: 0, metrics: {}, texts: {} });
    addSource(samples, { protocol });
    return { samples, rejected, accepted, isTelemetry: timed.length > 0 };
  };

  /** Returns why a sample of that time is not stored, or `undefined` if it is. */
  const timeError = (tsMs: number): string | undefined => {
    if (tsMs > now() + MAX_AHEAD_MS) return "lies more than 5 minutes in the future";
    return tsMs < now() - telemetryDays * DAY_MS ? `is more than ${telemetryDays} days old` : undefined;
  };

  const commit = async (reports: readonly ParsedReport[]): Promise<void> => {
    try {
      await shards.append(reports.flatMap(({ samples }) => samples));
    } catch (error) {
      // Ignores an outage if no report has telemetry: configurations are in another store, and only their time of receipt is lost.
      if (error instanceof Unavailable && !reports.some(({ isTelemetry }) => isTelemetry)) return;
      throw error;
    }
  };

  return {
    async ingestReport(actor, report) {
      authorizeAgent(actor, "telemetry.report", actor.name);
      const parsed = await parseReport(actor.name, report, now(), actor, "http");
      await commit([parsed]);
      const { accepted, rejected } = parsed;
      return { status: "success", detail: `${accepted} values stored`, accepted, rejected };
    },

    async ingestValues(groups, source) {
      const receivedMs = now();
      const samples: AgentSample[] = [];
      const rejected: IngestedValues["rejected"] = [];
      for (const { apId, tsMs = receivedMs, values } of groups) {
        const outOfTime = timeError(tsMs);
        const sample: Sample = { tsMs, metrics: {}, texts: {} };
        for (const { field, value, origin } of values) {
          const reason = outOfTime ?? addValue(sample, field, value);
          if (reason !== undefined) rejected.push({ field, reason, origin });
        }
        if (countValues(sample) > 0) samples.push({ apId, receivedMs, ...sample });
      }
      // As in a report without valid values: the agent is online.
      const stored = new Set(samples.map(({ apId }) => apId));
      for (const apId of new Set(groups.map(({ apId }) => apId))) {
        if (!stored.has(apId)) samples.push({ apId, receivedMs, tsMs: 0, metrics: {}, texts: {} });
      }
      addSource(samples, source);
      if (samples.length > 0) await shards.append(samples);
      return { accepted: samples.reduce((sum, sample) => sum + countValues(sample), 0), rejected };
    },

    async ingestBatch(actor, { messages }) {
      authorize(actor, "telemetry.deliver");
      const existing = await existingAgents(messages.map(({ ap_id }) => ap_id));
      const outcomes = await Promise.all(
        messages.map(
          async ({ ap_id, received_at, report, result, error }): Promise<ParsedReport | { error: string }> => {
            if (error !== undefined) return { error };
            try {
              if (!existing.has(ap_id)) throw new NotFound("Agent");
              // A bridge whose clock is ahead must not keep its agents online.
              const receivedMs = Math.min(received_at, now());
              const protocol = isEmulated(ap_id) ? "emulator" : "mqtt";
              if (result === undefined)
                return await parseReport(ap_id, validate(AgentReport, report), receivedMs, actor, protocol);
              await acceptCommandResult(ap_id, validate(CommandResult, result), actor.requestId);
              return { samples: [], rejected: [], accepted: 0, isTelemetry: false };
            } catch (error) {
              // The bridge retries the whole batch after an outage. Any other error is permanent and must fail one message only.
              if (error instanceof Unavailable) throw error;
              if (error instanceof Invalid) return { error: error.items[0]?.msg ?? error.message };
              if (error instanceof DomainError) return { error: error.message };
              log.error("bug", { error: describeError(error) });
              return { error: "Internal Server Error" };
            }
          },
        ),
      );
      await commit(outcomes.filter((outcome): outcome is ParsedReport => !("error" in outcome)));
      return {
        status: "success",
        results: outcomes.map((outcome) =>
          "error" in outcome ? outcome : { accepted: outcome.accepted, rejected: outcome.rejected },
        ),
      };
    },
  };
}

/** Adds the source to one sample of each agent. The others need not repeat it. */
function addSource(samples: readonly AgentSample[], source: Source): void {
  const apIds = new Set<string>();
  for (const sample of samples) {
    if (apIds.has(sample.apId)) continue;
    apIds.add(sample.apId);
    Object.assign(sample, source);
  }
}

/** Returns the payload as the schema's output. Throws `Invalid` if it does not match. */
function validate<S extends z.ZodType>(schema: S, payload: unknown): z.output<S> {
  const parsed = parse(schema, payload);
  if (!parsed.success) throw new Invalid(toValidationItems("payload", parsed.error));
  return parsed.data;
}

interface ParsedReport {
  samples: AgentSample[];
  rejected: Rejection[];
  /** How many values the samples hold. */
  accepted: number;
  /** Whether the report contained samples, valid or not. False for a configuration or a command result alone. */
  isTelemetry: boolean;
}

interface TimedPayload {
  tsMs: number;
  payload: Payload;
  /** Path of the time in the request body. */
  loc: (string | number)[];
}

/** Returns the payloads of a report in all its forms: a single payload, a list of samples, or the report itself as a payload. */
function timedPayloads(report: AgentReport, receivedMs: number): TimedPayload[] {
  const { ap_id: _, ts, configuration, geolocation, payload, samples, ...rest } = report;
  const tsMs = ts ?? receivedMs;
  const isPayload = [configuration, geolocation, payload, samples].every((member) => member === undefined);
  const single = isPayload ? rest : payload;
  return [
    ...(single === undefined ? [] : [{ tsMs, payload: single, loc: ["body", "ts"] }]),
    ...(samples ?? []).map((sample, i) => ({
      tsMs: sample.ts,
      payload: sample.payload,
      loc: ["body", "samples", i, "ts"],
    })),
  ];
}

/** Throws `Invalid` if a payload's time is too far in the future. */
function rejectFuture(timed: readonly TimedPayload[], nowMs: number): void {
  const msg = "Value error, a sample must not lie more than 5 minutes in the future";
  const items = timed
    .filter(({ tsMs }) => tsMs > nowMs + MAX_AHEAD_MS)
    .map(({ loc }) => ({ loc, msg, type: "value_error" }));
  if (items.length > 0) throw new Invalid(items);
}
