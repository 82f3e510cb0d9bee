import * as z from "zod";
import { Configuration } from "./configuration.ts";
import { Identifier, Password } from "./primitives.ts";

export const Agent = z
  .object({ id: z.uuid(), ap_id: z.string(), configuration: z.record(z.string(), z.unknown()) })
  .meta({ id: "Agent" });
export type Agent = z.output<typeof Agent>;

export const AgentCreate = z
  .object({ ap_id: Identifier, password: Password, configuration: Configuration })
  .meta({ id: "AgentCreate" });
export type AgentCreate = z.output<typeof AgentCreate>;

export const AgentUpdate = z
  .object({ password: Password.nullish(), configuration: Configuration.nullish() })
  .meta({ id: "AgentUpdate" });
export type AgentUpdate = z.output<typeof AgentUpdate>;

export const AgentPath = z.object({ ap_id: z.string() });
