import type * as z from "zod";
import type { AgentStore } from "../accounts/agent-store.ts";
import type { Actor } from "../auth/identity.ts";
import { authorize, authorizeAgent } from "../auth/permissions.ts";
import { DomainError, Invalid, NotAllowed, NotFound, Unavailable } from "../lib/errors.ts";
import { parse, toValidationItems } from "../lib/field-errors.ts";
import { describeError, log } from "../lib/log.ts";
import { TtlCache } from "../lib/ttl-cache.ts";
import { CommandResult } from "../schemas/job.ts";
import { AgentReport, type Delivered, type Delivery, type ReportResponse } from "../schemas/telemetry.ts";
import { countValues, type Payload, type Rejection, toSample } from "./samples.ts";
import type { ShardClient } from "./shard/shard-client.ts";
import type { AgentSample } from "./store/telemetry-store.ts";

/** What agents report: their configuration, their place, and their telemetry. */
export interface Ingest {
  /** By the agent itself. */
  report(actor: Actor, report: AgentReport): Promise<ReportResponse>;
  /** By a service that brings what agents said to the broker. One bad message does not hold up the others. */
  deliver(actor: Actor, delivery: Delivery): Promise<Delivered>;
}

/** Clocks differ; a sample from further ahead than this would stay the newest for too long. */
const MAX_AHEAD_MS = 5 * 60_000;
const DAY_MS = 86_400_000;
const KNOWN_MS = 5_000;
const MAX_KNOWN = 10_000;

export function createIngest(
  agents: AgentStore,
  shards: Pick<ShardClient, "append">,
  acceptCommandResult: (apId: string, result: CommandResult, requestId: string) => Promise<void>,
  telemetryDays: number,
  now: () => number = Date.now,
): Ingest {
  const known = new TtlCache<true>({ maxEntries: MAX_KNOWN, now });
  /** Which of the agents exist, in one look-up at the most. */
  const existing = async (apIds: readonly string[]): Promise<Set<string>> => {
    const [sure, unsure] = [new Set<string>(), new Set<string>()];
    for (const apId of apIds) (known.get(apId) ? sure : unsure).add(apId);
    for (const apId of unsure.size === 0 ? [] : await agents.existing([...unsure])) {
      known.set(apId, true, now() + KNOWN_MS);
      sure.add(apId);
    }
    return sure;
  };

  /** Does what the report says but for storing its samples, which it returns. */
  const take = async (apId: string, report: AgentReport, receivedMs: number, actor: Actor): Promise<Taken> => {
    if (report.ap_id !== undefined && report.ap_id !== apId) throw new NotAllowed();
    const timed = samplesOf(report, receivedMs);
    refuseFuture(timed, now());
    const { configuration, geolocation } = report;
    if (configuration !== undefined || geolocation !== undefined) {
      const patch = { ...configuration, ...(geolocation !== undefined && { geolocation }) };
      await agents.mergeConfiguration(apId, patch, actor);
    }
    const samples: AgentSample[] = [];
    const rejected: Rejection[] = [];
    const oldestMs = now() - telemetryDays * DAY_MS;
    for (const { tsMs, payload, loc } of timed) {
      // It would go with the next clean-up, and every week that a sample is of costs a part.
      if (tsMs < oldestMs) {
        rejected.push({ field: loc.slice(1).join("."), reason: `is more than ${telemetryDays} days old` });
        continue;
      }
      const parsed = toSample(tsMs, payload);
      for (const rejection of parsed.rejected) rejected.push(rejection);
      if (countValues(parsed.sample) > 0) samples.push({ apId, receivedMs, ...parsed.sample });
    }
    const accepted = samples.reduce((sum, sample) => sum + countValues(sample), 0);
    // A sample without values: nothing of the report is stored, but its agent was heard of.
    if (samples.length === 0) samples.push({ apId, receivedMs, tsMs: 0, metrics: {}, texts: {} });
    return { samples, rejected, accepted, isTelemetry: timed.length > 0 };
  };

  /** Commits the samples; which of the reports have one that the store rejects. */
  const store = async (taken: readonly Taken[]): Promise<ReadonlySet<Taken>> => {
    try {
      const rejected = await shards.append(taken.flatMap(({ samples }) => samples));
      return new Set(taken.filter(({ samples }) => samples.some((sample) => rejected.has(sample))));
    } catch (error) {
      // Configurations are stored elsewhere. Without the telemetry store, only the time of their receipt is missing.
      if (error instanceof Unavailable && !taken.some(({ isTelemetry }) => isTelemetry)) return new Set();
      throw error;
    }
  };

  return {
    async report(actor, report) {
      authorizeAgent(actor, "telemetry.report", actor.name);
      const taken = await take(actor.name, report, now(), actor);
      const wrong = await store([taken]);
      if (wrong.size > 0) throw new Error("The telemetry store rejects a sample");
      const { accepted, rejected } = taken;
      return { status: "success", detail: `${accepted} values stored`, accepted, rejected };
    },

    async deliver(actor, { messages }) {
      authorize(actor, "telemetry.deliver");
      const agentsThere = await existing(messages.map(({ ap_id }) => ap_id));
      const outcomes = await Promise.all(
        messages.map(async ({ ap_id, received_at, report, result, error }): Promise<Taken | { error: string }> => {
          if (error !== undefined) return { error };
          try {
            if (!agentsThere.has(ap_id)) throw new NotFound("Agent");
            // A bridge whose clock is ahead must not keep its agents online.
            const receivedMs = Math.min(received_at, now());
            if (result === undefined) return await take(ap_id, valid(AgentReport, report), receivedMs, actor);
            await acceptCommandResult(ap_id, valid(CommandResult, result), actor.requestId);
            return { samples: [], rejected: [], accepted: 0, isTelemetry: false };
          } catch (error) {
            // Where a store is away, whoever brings it can try again. Otherwise it would fail for ever, and the others with it.
            if (error instanceof Unavailable) throw error;
            if (error instanceof Invalid) return { error: error.items[0]?.msg ?? error.message };
            if (error instanceof DomainError) return { error: error.message };
            log.error("bug", { error: describeError(error) });
            return { error: "Internal Server Error" };
          }
        }),
      );
      const wrong = await store(outcomes.filter((outcome): outcome is Taken => !("error" in outcome)));
      return {
        status: "success",
        results: outcomes.map((outcome) => {
          if ("error" in outcome) return outcome;
          if (wrong.has(outcome)) return { error: "Internal Server Error" };
          return { accepted: outcome.accepted, rejected: outcome.rejected };
        }),
      };
    },
  };
}

function valid<S extends z.ZodType>(schema: S, payload: unknown): z.output<S> {
  const parsed = parse(schema, payload);
  if (!parsed.success) throw new Invalid(toValidationItems("payload", parsed.error));
  return parsed.data;
}

interface Taken {
  samples: AgentSample[];
  rejected: Rejection[];
  accepted: number;
  /** Whether it brought samples, stored or not, and not a configuration or a result alone. */
  isTelemetry: boolean;
}

interface Timed {
  tsMs: number;
  payload: Payload;
  /** Where the time stood in the body. */
  loc: (string | number)[];
}

function samplesOf(report: AgentReport, receivedMs: number): Timed[] {
  const { ap_id: _, ts, configuration, geolocation, payload, samples, ...rest } = report;
  const tsMs = ts ?? receivedMs;
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
