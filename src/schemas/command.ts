import * as z from "zod";
import { Selector } from "./fleet/selector.ts";
import { Identifier } from "./primitives.ts";

/** A command is one line, without characters that a terminal would interpret. */
const Command = z
  .string()
  .min(1)
  .max(256)
  // biome-ignore lint/suspicious/noControlCharactersInRegex: the pattern excludes these characters.
  .regex(/^[^\u0000-\u001f\u007f-\u009f\u2028\u2029]*$/u)
  .refine((command) => command.isWellFormed() && command.trim() === command, "must not begin or end with blanks");

export const CommandRequest = z.object({
  agent_id: Identifier.describe("The agent's `ap_id`."),
  command: Command.describe("The name of a command that the agent supports, and its arguments, separated by spaces."),
});
export type CommandRequest = z.output<typeof CommandRequest>;

/** Agents that one request can send a command to. */
export const MAX_COMMAND_TARGETS = 1_000;

export const AgentSelection = z
  .object({
    ap_ids: z
      .array(Identifier)
      .min(1)
      .max(MAX_COMMAND_TARGETS)
      .optional()
      .describe("Names of agents. Default: all agents that the caller may send commands to."),
    selector: Selector.optional(),
    access_point_type: z
      .enum(["5G", "WiFi", "LiFi"])
      .optional()
      .describe("Selects only agents whose configuration has this `access_point_type`."),
    area: z
      .object({
        latitude: z.number().gte(-90).lte(90),
        longitude: z.number().gte(-180).lte(180),
        radius_m: z.number().gt(0).lte(20_100_000),
      })
      .optional()
      .describe("Selects only agents within this distance of this position."),
  })
  .refine(
    ({ ap_ids, selector, access_point_type, area }) =>
      ap_ids !== undefined || selector !== undefined || access_point_type !== undefined || area !== undefined,
    "name agents, a selector, a kind or an area",
  )
  .meta({ id: "AgentSelection" });
export type AgentSelection = z.output<typeof AgentSelection>;

export const CommandsRequest = z.object({ command: Command, agents: AgentSelection }).meta({ id: "CommandMany" });
export type CommandsRequest = z.output<typeof CommandsRequest>;

export const CommandsQueued = z
  .object({
    status: z.literal("queued"),
    jobs: z.array(z.object({ ap_id: z.string(), job_number: z.string(), websocket: z.string() })),
    refused: z
      .array(z.object({ ap_id: z.string(), detail: z.string() }))
      .describe("Agents that the command is not sent to, and the reasons."),
  })
  .meta({ id: "ManyQueued" });
export type CommandsQueued = z.output<typeof CommandsQueued>;
