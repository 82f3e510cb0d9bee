import * as z from "zod";
import { dictionary, Identifier } from "../primitives.ts";

const permission = (description: string) => z.boolean().optional().describe(description);

/** Other keys are stored, and have no effect. */
const KnownPermissions = z
  .looseObject({
    agents: permission("List and read agents. Default: true."),
    data: permission("Read telemetry. Default: true."),
    commands: permission("Send commands. Default: true."),
    emulator: permission("Run emulated access points. Default: true."),
    callbacks: permission("Post to any job. Default: false."),
    broker: permission("Use all topics of the broker. Default: false."),
    write: permission("Write telemetry for agents, with the protocols of other systems. Default: false."),
    register: permission("Register the agents that it writes for and that do not exist. Default: false."),
    agent_label: z
      .string()
      .min(1)
      .max(200)
      .optional()
      .describe(
        "The label, tag or resource attribute that names the agent in the metrics that the app writes and reads. " +
          "Default: that of the protocol.",
      ),
    ap_ids: z
      .array(z.string())
      .max(10_000)
      .optional()
      .describe("The only agents that the app may access. Default: all."),
  })
  .meta({ id: "Permissions" });
export type AppPermission = Exclude<keyof typeof KnownPermissions.shape, "ap_ids" | "agent_label">;
export const Permissions = dictionary(KnownPermissions);
export type Permissions = z.output<typeof Permissions>;

const ApiKey = z.string().min(8).max(256);

export const ThirdPartyApp = z
  .object({ id: z.uuid(), app_name: z.string(), api_key: z.string(), permissions: z.record(z.string(), z.unknown()) })
  .meta({ id: "ThirdPartyApp" });
export type ThirdPartyApp = z.output<typeof ThirdPartyApp>;

export const ThirdPartyAppCreate = z
  .object({ app_name: Identifier, api_key: ApiKey, permissions: Permissions })
  .meta({ id: "ThirdPartyAppCreate" });
export type ThirdPartyAppCreate = z.output<typeof ThirdPartyAppCreate>;

export const ThirdPartyAppUpdate = z
  .object({ api_key: ApiKey.nullish(), permissions: Permissions.nullish() })
  .meta({ id: "ThirdPartyAppUpdate" });
export type ThirdPartyAppUpdate = z.output<typeof ThirdPartyAppUpdate>;

export const AppPath = z.object({ app_name: z.string() });
