import * as z from "zod";

/** The whole network at a glance, for a map or a table that asks every few seconds. */

const latest = (metric: string) =>
  z.number().nullable().describe(`The latest value of the metric \`${metric}\`, where it is of the last five minutes.`);

export const AccessPointState = z
  .object({
    ap_id: z.string(),
    access_point_type: z
      .string()
      .nullable()
      .describe("`configuration.access_point_type`, where that is a text of up to 64 characters."),
    latitude: z.number().nullable().describe("Of `configuration.geolocation`."),
    longitude: z.number().nullable(),
    onboard: z.boolean(),
    online: z.boolean().describe("As with `GET /api/v1/agents/`."),
    last_seen: z.iso.datetime().nullable(),
    load: latest("load"),
    quality: latest("quality"),
    users: latest("users"),
  })
  .meta({ id: "AccessPointState" });
export type AccessPointState = z.output<typeof AccessPointState>;

export const Overview = z
  .object({
    at: z.iso.datetime().describe("When it was like this."),
    access_points: z.array(AccessPointState).describe("In the order of their names."),
  })
  .meta({ id: "Overview" });
export type Overview = z.output<typeof Overview>;
