import * as z from "zod";
import { Identifier } from "./primitives.ts";

/** What goes to an agent in one line: no more than a line, and nothing that a terminal would obey. */
const Command = z
  .string()
  .min(1)
  .max(256)
  // biome-ignore lint/suspicious/noControlCharactersInRegex: these are what is kept out.
  .regex(/^[^\u0000-\u001f\u007f-\u009f\u2028\u2029]*$/u)
  .refine((command) => command.isWellFormed() && command.trim() === command, "must not begin or end with blanks");

export const CommandRequest = z.object({
  agent_id: Identifier.describe("The agent's `ap_id`."),
  command: Command.describe("A name that the agent knows, and what belongs to it, separated by blanks."),
});
export type CommandRequest = z.output<typeof CommandRequest>;

export const MAX_COMMANDED = 1_000;

export const AgentSelection = z
  .object({
    ap_ids: z
      .array(Identifier)
      .min(1)
      .max(MAX_COMMANDED)
      .optional()
      .describe("These; else all that the caller may command."),
    access_point_type: z
      .enum(["5G", "WiFi", "LiFi"])
      .optional()
      .describe("Of them, those whose configuration says that they are of this kind."),
    area: z
      .object({
        latitude: z.number().gte(-90).lte(90),
        longitude: z.number().gte(-180).lte(180),
        radius_m: z.number().gt(0).lte(20_100_000),
      })
      .optional()
      .describe("Of them, those that are within this distance of this place."),
  })
  .refine(
    ({ ap_ids, access_point_type, area }) =>
      ap_ids !== undefined || access_point_type !== undefined || area !== undefined,
    "name agents, a kind or an area",
  )
  .meta({ id: "AgentSelection" });
export type AgentSelection = z.output<typeof AgentSelection>;

export const CommandMany = z.object({ command: Command, agents: AgentSelection }).meta({ id: "CommandMany" });
export type CommandMany = z.output<typeof CommandMany>;

export const ManyQueued = z
  .object({
    status: z.literal("queued"),
    jobs: z.array(z.object({ ap_id: z.string(), job_number: z.string(), websocket: z.string() })),
    refused: z
      .array(z.object({ ap_id: z.string(), detail: z.string() }))
      .describe("Agents that it does not go to, and why."),
  })
  .meta({ id: "ManyQueued" });
export type ManyQueued = z.output<typeof ManyQueued>;
