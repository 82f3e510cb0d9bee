import * as z from "zod";
import { datetimeError, millisecondsOf } from "../lib/datetimes.ts";
import { Configuration, Geolocation } from "./configuration.ts";
import { customIssue, dictionary, Identifier } from "./primitives.ts";

/** A time: RFC 3339 (without an offset: UTC), or the epoch in seconds or, from 1e11 on, in milliseconds. As milliseconds. */
export const Timestamp = z
  .preprocess(
    (value, context) => {
      if (value === undefined || typeof value === "string" || typeof value === "number") return value;
      context.addIssue(customIssue("datetime_type", "Input should be a valid datetime"));
      return z.NEVER;
    },
    z.union([z.string(), z.number()]).transform((value, context): number => {
      const tsMs = toMilliseconds(value);
      if (tsMs !== undefined && tsMs >= EARLIEST_MS && tsMs <= LATEST_MS) return tsMs;
      const error = typeof value === "string" && tsMs === undefined ? datetimeError(value) : OUT_OF_RANGE;
      context.addIssue(
        typeof value === "string"
          ? customIssue("datetime_from_date_parsing", `Input should be a valid datetime or date, ${error}`)
          : customIssue("datetime_parsing", `Input should be a valid datetime, ${error}`),
      );
      return z.NEVER;
    }),
  )
  .meta({ description: "RFC 3339, or the epoch in seconds or milliseconds." });

/** From here on a number of the epoch is taken for milliseconds; in seconds that would be the year 5138. */
const MILLISECONDS_FROM = 1e11;
/** What ClickHouse's DateTime64(3) holds. */
const EARLIEST_MS = Date.UTC(1900, 0, 1);
const LATEST_MS = Date.UTC(2299, 11, 31);
const OUT_OF_RANGE = "dates before 1900 and after 2299 are not supported";

const toMilliseconds = (value: string | number): number | undefined =>
  typeof value === "number" || /^\d+(?:\.\d+)?$/.test(value) ? fromEpoch(Number(value)) : millisecondsOf(value);

const fromEpoch = (value: number): number => Math.round(value < MILLISECONDS_FROM ? value * 1000 : value);

const Payload = z.record(z.string(), z.unknown());

export const MAX_SAMPLES = 1_000;

/** What an agent posts. With none of the members that say what it is, the object itself is one sample. */
const ReportMembers = z
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
export const AgentReport = dictionary(ReportMembers);
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
