import * as z from "zod";
import { datetimeError, millisecondsOf } from "../lib/datetimes.ts";
import { Configuration, Geolocation } from "./agent.ts";
import { customIssue, dictionary, Identifier } from "./primitives.ts";

/** A time: RFC 3339 (UTC unless it has an offset), or the epoch in seconds or, from 1e11 on, in milliseconds. Parsed to milliseconds. */
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
  .meta({ description: "RFC 3339, or seconds or milliseconds since the epoch." });

/** Numbers from here on are milliseconds. In seconds this would be the year 5138. */
const MILLISECONDS_FROM = 1e11;
/** Range of ClickHouse's DateTime64(3). */
const EARLIEST_MS = Date.UTC(1900, 0, 1);
const LATEST_MS = Date.UTC(2299, 11, 31);
const OUT_OF_RANGE = "dates before 1900 and after 2299 are not supported";

const toMilliseconds = (value: string | number): number | undefined =>
  typeof value === "number" || /^\d+(?:\.\d+)?$/.test(value) ? fromEpoch(Number(value)) : millisecondsOf(value);

const fromEpoch = (value: number): number => Math.round(value < MILLISECONDS_FROM ? value * 1000 : value);

const Payload = z.record(z.string(), z.unknown());

export const MAX_SAMPLES = 1_000;

/** An agent's report. An object without `configuration`, `geolocation`, `payload` and `samples` is itself one sample. */
const ReportMembers = z
  .looseObject({
    ap_id: z.string().optional().describe("Must be the caller's own name."),
    configuration: Configuration.optional().describe("Merged into the agent's configuration, key by key."),
    geolocation: Geolocation.optional().describe("Position of the access point."),
    payload: Payload.optional().describe("One sample: field name → value."),
    ts: Timestamp.optional().describe(
      "Time of the sample. Default: now. A sample older than `TELEMETRY_DAYS` is listed in `rejected`.",
    ),
    samples: z
      .array(z.object({ ts: Timestamp, payload: Payload }))
      .max(MAX_SAMPLES)
      .optional()
      .describe("Several samples in one request, for example a backlog."),
  })
  .meta({ id: "AgentReport" });
export const AgentReport = dictionary(ReportMembers);
export type AgentReport = z.output<typeof AgentReport>;

export const ReportResponse = z
  .object({
    status: z.literal("success"),
    detail: z.string(),
    accepted: z.int().describe("Number of stored values."),
    rejected: z
      .array(z.object({ field: z.string(), reason: z.string() }))
      .describe("Values that were not stored, and the reasons."),
  })
  .meta({ id: "ReportAnswer" });
export type ReportResponse = z.output<typeof ReportResponse>;

/** Maximum number of messages in one request of a bridge. */
export const MAX_DELIVERY_MESSAGES = 1_000;
export const MAX_DELIVERY_ERROR_LENGTH = 200;

export const Delivery = z
  .object({
    messages: z
      .array(
        z.object({
          ap_id: Identifier,
          received_at: Timestamp.describe(
            "Time at which the bridge received the message. Used for the agent's presence and for samples without a time; limited to now.",
          ),
          report: z.unknown().optional().describe("The agent's report: an `AgentReport`."),
          result: z
            .unknown()
            .optional()
            .describe("Instead of a report: the agent's result of a command, a `CommandResult`."),
          error: z
            .string()
            .max(MAX_DELIVERY_ERROR_LENGTH)
            .optional()
            .describe(
              "Instead of a report: the reason why the bridge rejected the message. The service counts the message as rejected and returns the reason.",
            ),
        }),
      )
      .min(1)
      .max(MAX_DELIVERY_MESSAGES),
  })
  .meta({ id: "Delivery" });
export type Delivery = z.output<typeof Delivery>;

const Rejections = z.array(z.object({ field: z.string(), reason: z.string() }));

export const Delivered = z
  .object({
    status: z.literal("success"),
    results: z
      .array(z.union([z.object({ accepted: z.int(), rejected: Rejections }), z.object({ error: z.string() })]))
      .describe("One result for each message, in the same order."),
  })
  .meta({ id: "Delivered" });
export type Delivered = z.output<typeof Delivered>;
