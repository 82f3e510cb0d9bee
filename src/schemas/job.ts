import * as z from "zod";
import { SelectorQuery } from "./fleet/selector.ts";
import { customIssue, integer } from "./primitives.ts";
import { Timestamp } from "./telemetry.ts";

/** `stream`: the caller chose the job number, and posts the messages itself. */
export const JOB_KINDS = ["agent_details", "agent_data", "emulator", "command", "stream"] as const;
export type JobKind = (typeof JOB_KINDS)[number];
export const JOB_STATES = ["queued", "running", "done", "failed", "expired", "cancelled"] as const;
export type JobState = (typeof JOB_STATES)[number];

export const JobNumber = z
  .string()
  .regex(/^[A-Za-z0-9._:-]{1,128}$/)
  .describe("A job number from the service, or one that you choose.");

export const Queued = z
  .object({
    status: z.literal("queued"),
    job_number: z.string(),
    websocket: z.string().describe("Path of the WebSocket that delivers the results."),
  })
  .meta({ id: "Queued" });
export type Queued = z.output<typeof Queued>;

export const queued = (jobNumber: string): Queued => ({
  status: "queued",
  job_number: jobNumber,
  websocket: `/api/v1/ws/${jobNumber}`,
});

const MAX_RANGE_MS = 366 * 86_400_000;

export const DataRequest = z
  .object({
    agent_id: z.string().describe("The agent's `ap_id`."),
    start_time: Timestamp.describe("Start of the period. UTC, unless it has an offset."),
    end_time: Timestamp.describe(
      "End of the period. If it is in the future, the stream continues until then with new data.",
    ),
  })
  .superRefine(({ start_time, end_time }, context) => {
    const reject = (msg: string) => context.addIssue({ ...customIssue("value_error", msg), path: ["end_time"] });
    if (end_time <= start_time) reject("Value error, end_time must be after start_time");
    else if (end_time - start_time > MAX_RANGE_MS) reject("Value error, the range must not exceed 366 days");
  });
export type DataRequest = z.output<typeof DataRequest>;

const MAX_LIVE_S = 3_600;

export const LiveDataRequest = SelectorQuery.extend({
  duration: integer(z.int().gt(0).lte(MAX_LIVE_S)).default(300).describe("Length of the stream in seconds."),
});

export const JobPath = z.object({ job_number: JobNumber });
export const CallbackQuery = z.object({ job_number: JobNumber });

export const MAX_IDEMPOTENCY_KEY_LENGTH = 256;

export const CallbackHeaders = z.object({
  "Idempotency-Key": z
    .string()
    .max(MAX_IDEMPOTENCY_KEY_LENGTH)
    .optional()
    .describe("A key that you choose. The job stores only the first callback with it."),
});

export const StreamQuery = z.object({
  after: integer(z.int().gte(0))
    .optional()
    .describe("The last `seq` that you have received. Acknowledges all messages up to it."),
});

export const JobsQuery = z.object({
  kind: z.enum(JOB_KINDS).optional(),
  state: z.enum(JOB_STATES).optional(),
  limit: integer(z.int().gt(0).lte(1000)).default(100),
  offset: integer(z.int().gte(0)).default(0),
});
export type JobsQuery = z.output<typeof JobsQuery>;

export const JobRecord = z
  .object({
    job_number: z.string(),
    kind: z.enum(JOB_KINDS),
    state: z.enum(JOB_STATES),
    owner: z.string().describe("`user:…`, `agent:…` or `app:…`."),
    created_at: z.iso.datetime(),
    updated_at: z.iso.datetime(),
    messages: z.int().describe("Number of messages so far."),
    detail: z.string(),
  })
  .meta({ id: "JobRecord" });
export type JobRecord = z.output<typeof JobRecord>;

export const ROW_COUNTS = {
  rows_sent: z.int().describe("Rows that the service has produced for the job: points or agents."),
  rows_estimated: z.int().nullable().describe("Estimated total number of rows; null if unknown."),
};

export const JobStatus = JobRecord.extend({
  retained: z.int().describe("Stored messages that are not acknowledged."),
  retained_bytes: z.int(),
  acknowledged_up_to: z.int(),
  sockets: z.int(),
  ...ROW_COUNTS,
}).meta({ id: "JobStatus" });
export type JobStatus = z.output<typeof JobStatus>;

export const CallbackResponse = z
  .object({
    status: z.literal("success"),
    job_number: z.string(),
    seq: z.int(),
    delivered: z.int().describe("Number of sockets that the message was sent to."),
    queued: z.boolean().describe("Whether the message is stored until a socket connects."),
    detail: z.string(),
  })
  .meta({ id: "CallbackAnswer" });
export type CallbackResponse = z.output<typeof CallbackResponse>;

/** An agent's result of a command. */
export const CommandResult = z
  .object({ job_number: JobNumber, status: z.enum(["done", "failed"]), data: z.unknown().optional() })
  .meta({ id: "CommandResult" });
export type CommandResult = z.output<typeof CommandResult>;

export const AnyItems = z.array(z.unknown()).meta({ id: "Items" });
export const ObjectItems = z.array(z.record(z.string(), z.unknown())).meta({ id: "ObjectItems" });

/** What a client sends on a job's WebSocket. */
export const Acknowledgement = z
  .strictObject({ ack: z.int().nonnegative().describe("The `seq` up to which you have received all messages.") })
  .meta({ id: "Acknowledgement", description: "Applies to the whole job: acknowledged messages are not sent again." });
