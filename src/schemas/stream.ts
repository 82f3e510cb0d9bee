import * as z from "zod";
import { AnyItems, JOB_STATES, ObjectItems, ROW_COUNTS } from "./job.ts";
import { AgentDetails } from "./metrics.ts";
import type { MessageKind } from "./stream-protocol.ts";

/** The messages that a job's WebSocket sends, for the AsyncAPI document and as types. The service builds them without these schemas. */

export const HistoryRow = z
  .object({
    ap_id: z.string().optional().describe("The agent, in the live data of several agents."),
    time: z.iso.datetime(),
    field: z.string(),
    value: z.union([z.number(), z.string()]),
  })
  .meta({ id: "HistoryRow" });

export const Progress = z.object({ state: z.enum(JOB_STATES), ...ROW_COUNTS }).meta({ id: "Progress" });
export type Progress = z.output<typeof Progress>;

export const Failure = Progress.extend({ detail: z.string() }).meta({ id: "Failure" });
export type Failure = z.output<typeof Failure>;

export const Missing = z
  .object({
    from_seq: z.int(),
    to_seq: z.int().describe("The last missing message. Also the `seq` of this message."),
  })
  .meta({ id: "Missing" });

const message = <K extends MessageKind, D extends z.ZodType>(kind: K, id: string, description: string, data: D) =>
  z
    .object({
      job_number: z.string(),
      seq: z.int().gte(1).describe("Number of the message within its job, from 1, without gaps."),
      type: z.literal(kind),
      ts: z.iso.datetime().describe("Time at which the service accepted the message."),
      final: z
        .boolean()
        .describe(
          "Whether this is the last message that the service produces for the job. Callback clients may still post to it.",
        ),
      data,
    })
    .meta({ id, description });

/** Rows that the service produces, or the data of a callback. */
const rowsOr = <R extends z.ZodType, P extends z.ZodType>(row: R, posted: P) =>
  z.union([z.array(row).describe("Rows from the service."), posted]);

export const STREAM_MESSAGES = {
  agent_data: message("agent_data", "AgentDataMessage", "An agent's data.", rowsOr(HistoryRow, AnyItems)),
  agent_details: message(
    "agent_details",
    "AgentDetailsMessage",
    "Details of agents.",
    rowsOr(AgentDetails, ObjectItems),
  ),
  emulator: message("emulator", "EmulatorMessage", "An emulator's report.", ObjectItems),
  command: message("command", "CommandMessage", "An agent's result of a command.", ObjectItems),
  status: message("status", "StatusMessage", "The state and progress of the job.", Progress),
  error: message("error", "ErrorMessage", "The job has failed.", Failure),
  gap: message(
    "gap",
    "GapMessage",
    "Replaces messages that were dropped before they were acknowledged, because of their age or for lack of space.",
    z.array(Missing),
  ),
} as const satisfies Record<MessageKind, z.ZodType>;
