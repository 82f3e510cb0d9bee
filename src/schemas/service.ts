import * as z from "zod";

/** What the service reports about itself, without a token. */

const ComponentState = z.enum(["up", "down"]);

export const OutboxSize = z.object({
  messages: z.int().describe("Messages for the broker whose arrival is not confirmed."),
  oldest_ms: z.int().describe("Time that the oldest message has waited for its first publication."),
});
export type OutboxSize = z.output<typeof OutboxSize>;

export const Readiness = z.object({
  status: z.enum(["ready", "unavailable"]),
  parts: z.record(z.string(), ComponentState),
  outbox: OutboxSize.optional(),
});

/** Settings that the dashboard needs before a user logs in. */
export const DashboardSettings = z
  .object({
    map: z.object({
      tiles: z.string().nullable().describe("URL of the map tiles, with `{z}`, `{x}` and `{y}`."),
      attribution: z.string().nullable().describe("Source of the map tiles, to show on the map."),
    }),
    sign_up: z.boolean().describe("Whether anyone may create an account."),
  })
  .meta({ id: "DashboardSettings" });
export type DashboardSettings = z.output<typeof DashboardSettings>;
