import * as z from "zod";
import { AnyItems, JOB_STATES, ObjectItems, ROW_COUNTS } from "./job.ts";
import { AgentDetails } from "./metrics.ts";
import type { MessageKind } from "./stream-protocol.ts";

/** What goes over a job's WebSocket, both ways. */

export const HistoryRow = z
  .object({ time: z.iso.datetime(), field: z.string(), value: z.union([z.number(), z.string()]) })
  .meta({ id: "HistoryRow" });

export const Progress = z.object({ state: z.enum(JOB_STATES), ...ROW_COUNTS }).meta({ id: "Progress" });
export type Progress = z.output<typeof Progress>;

export const Failure = Progress.extend({ detail: z.string() }).meta({ id: "Failure" });
export type Failure = z.output<typeof Failure>;

export const Missing = z
  .object({
    from_seq: z.int(),
    to_seq: z.int().describe("The last one that is missing; also the message's own `seq`."),
  })
  .meta({ id: "Missing" });

const message = <K extends MessageKind, D extends z.ZodType>(kind: K, id: string, description: string, data: D) =>
  z
    .object({
      job_number: z.string(),
      seq: z.int().gte(1).describe("Counts the job's messages from 1, without a hole."),
      type: z.literal(kind),
      ts: z.iso.datetime().describe("When the service took it in."),
      final: z
        .boolean()
        .describe("The last of what the service itself produces for the job. Others may post to it still."),
      data,
    })
    .meta({ id, description });

/** Rows of the service's own, or whatever was posted in a callback. */
const rowsOr = <R extends z.ZodType, P extends z.ZodType>(row: R, posted: P) =>
  z.union([z.array(row).describe("From the service itself."), posted]);

export const STREAM_MESSAGES = {
  agent_data: message("agent_data", "AgentDataMessage", "An agent's data.", rowsOr(HistoryRow, AnyItems)),
  agent_details: message("agent_details", "AgentDetailsMessage", "Agents.", rowsOr(AgentDetails, ObjectItems)),
  emulator: message("emulator", "EmulatorMessage", "What an emulator has to say.", ObjectItems),
  command: message("command", "CommandMessage", "An agent's answer to a command.", ObjectItems),
  status: message("status", "StatusMessage", "How far the job has come.", Progress),
  error: message("error", "ErrorMessage", "The job has failed.", Failure),
  gap: message(
    "gap",
    "GapMessage",
    "In place of messages that went before anybody acknowledged them: too old, or there was no room.",
    z.array(Missing),
  ),
} as const satisfies Record<MessageKind, z.ZodType>;

export const Acknowledgement = z
  .strictObject({ ack: z.int().nonnegative().describe("The `seq` up to which you have everything.") })
  .meta({ id: "Acknowledgement", description: "For the job as a whole: what is acknowledged is not sent again." });

/** Answered by the platform, without waking the job. */
export const KEEP_ALIVE = { ping: "ping", pong: "pong" } as const;
