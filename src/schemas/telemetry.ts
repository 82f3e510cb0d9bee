import * as z from "zod";
import { Configuration, Geolocation } from "./configuration.ts";
import { fault, Identifier } from "./primitives.ts";

/** A time: RFC 3339 (without an offset: UTC), or the epoch in seconds or, from 1e11 on, in milliseconds. As milliseconds. */
export const Timestamp = z
  .union([z.string(), z.number()])
  .transform((value, context): number => {
    const tsMs = toMilliseconds(value);
    if (tsMs !== undefined) return tsMs;
    context.addIssue(fault("datetime_from_date_parsing", "Input should be a valid datetime or date"));
    return z.NEVER;
  })
  .meta({ description: "RFC 3339, or the epoch in seconds or milliseconds." });

/** From here on a number of the epoch is taken for milliseconds; in seconds that would be the year 5138. */
const MILLISECONDS_FROM = 1e11;
const RFC_3339 = /^\d{4}-\d\d-\d\d(?:[Tt ]\d\d:\d\d(?::\d\d(?:\.\d+)?)?([Zz]|[+-]\d\d:?\d\d)?)?$/;
/** What ClickHouse's DateTime64(3) holds. */
const EARLIEST_MS = Date.UTC(1900, 0, 1);
const LATEST_MS = Date.UTC(2299, 11, 31);

function toMilliseconds(value: string | number): number | undefined {
  const tsMs = typeof value === "number" || /^\d+(?:\.\d+)?$/.test(value) ? fromEpoch(Number(value)) : fromText(value);
  return Number.isFinite(tsMs) && tsMs >= EARLIEST_MS && tsMs <= LATEST_MS ? tsMs : undefined;
}

const fromEpoch = (value: number): number => Math.round(value < MILLISECONDS_FROM ? value * 1000 : value);

function fromText(text: string): number {
  const match = RFC_3339.exec(text);
  if (match === null) return Number.NaN;
  const isDate = text.length === 10;
  return Date.parse(`${text.toUpperCase().replace(" ", "T")}${isDate || match[1] !== undefined ? "" : "Z"}`);
}

const Payload = z.record(z.string(), z.unknown());

export const MAX_SAMPLES = 1_000;

/** What an agent posts. With none of the members that say what it is, the object itself is one sample. */
export const AgentReport = z
  .looseObject({
    ap_id: z.string().optional().describe("The caller's own."),
    configuration: Configuration.optional().describe("Merged into the agent's configuration, key by key."),
    geolocation: Geolocation.optional().describe("Where the access point is."),
    payload: Payload.optional().describe("One sample: field name → value."),
    ts: Timestamp.optional().describe(
      "The sample's time. Default: now. Older than telemetry is kept (`TELEMETRY_DAYS`): rejected by name.",
    ),
    samples: z
      .array(z.object({ ts: Timestamp, payload: Payload }))
      .max(MAX_SAMPLES)
      .optional()
      .describe("A backlog in one call."),
  })
  .meta({ id: "AgentReport" });
export type AgentReport = z.output<typeof AgentReport>;

export const ReportAnswer = z
  .object({
    status: z.literal("success"),
    detail: z.string(),
    accepted: z.int().describe("How many values were stored."),
    rejected: z.array(z.object({ field: z.string(), reason: z.string() })).describe("Values that were not, and why."),
  })
  .meta({ id: "ReportAnswer" });
export type ReportAnswer = z.output<typeof ReportAnswer>;

/** Messages that a bridge takes in one call. */
export const MAX_DELIVERY = 1_000;
export const MAX_DELIVERY_ERROR = 200;

export const Delivery = z
  .object({
    messages: z
      .array(
        z.object({
          ap_id: Identifier,
          received_at: Timestamp.describe(
            "When the message was received, for the agent's presence, and the time of a sample that has none. Not later than now.",
          ),
          report: z.unknown().optional().describe("What the agent reports: an `AgentReport`."),
          result: z.unknown().optional().describe("Instead, its answer to a command: a `CommandResult`."),
          error: z
            .string()
            .max(MAX_DELIVERY_ERROR)
            .optional()
            .describe("Instead, why the bridge rejects the agent's message. It is counted as rejected and returned."),
        }),
      )
      .min(1)
      .max(MAX_DELIVERY),
  })
  .meta({ id: "Delivery" });
export type Delivery = z.output<typeof Delivery>;

const Rejections = z.array(z.object({ field: z.string(), reason: z.string() }));

export const Delivered = z
  .object({
    status: z.literal("success"),
    results: z
      .array(z.union([z.object({ accepted: z.int(), rejected: Rejections }), z.object({ error: z.string() })]))
      .describe("One for each message, in their order."),
  })
  .meta({ id: "Delivered" });
export type Delivered = z.output<typeof Delivered>;
