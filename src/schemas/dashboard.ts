import * as z from "zod";

/** What the page has to know before anybody signs in. */
export const DashboardSettings = z
  .object({
    map: z.object({
      tiles: z.string().nullable().describe("Where pictures of the map come from: a URL with `{z}`, `{x}` and `{y}`."),
      attribution: z.string().nullable().describe("Whom they are from."),
    }),
    sign_up: z.boolean().describe("Whether anybody may make an account."),
  })
  .meta({ id: "DashboardSettings" });
export type DashboardSettings = z.output<typeof DashboardSettings>;
