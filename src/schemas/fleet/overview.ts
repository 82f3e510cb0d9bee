import * as z from "zod";
import { LastSeenUnknown } from "../metrics.ts";

const latest = (metric: string) =>
  z.number().nullable().describe(`The latest value of the metric \`${metric}\`, if it is less than five minutes old.`);

export const AccessPointState = z
  .object({
    ap_id: z.string(),
    access_point_type: z
      .string()
      .nullable()
      .describe("`configuration.access_point_type`, if it is a string of up to 64 characters."),
    latitude: z.number().nullable().describe("From `configuration.geolocation`."),
    longitude: z.number().nullable(),
    site: z.string().nullable().describe("The label `site`."),
    onboard: z.boolean(),
    online: z.boolean().describe("As in `GET /api/v1/agents/`."),
    last_seen: z.iso.datetime().nullable(),
    last_seen_unknown: LastSeenUnknown,
    load: latest("load"),
    quality: latest("quality"),
    users: latest("users"),
  })
  .meta({ id: "AccessPointState" });
export type AccessPointState = z.output<typeof AccessPointState>;

/** The state of the whole network, for a map or a table that is refreshed every few seconds. */
export const Overview = z
  .object({
    at: z.iso.datetime().describe("Time of this state."),
    access_points: z.array(AccessPointState).describe("Sorted by name."),
  })
  .meta({ id: "Overview" });
export type Overview = z.output<typeof Overview>;
