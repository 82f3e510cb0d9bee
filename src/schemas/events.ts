import * as z from "zod";

/** What happened in the network and in the service, in the order in which it was recorded. */

export const EVENT_TYPES = [
  "agent.registered",
  "agent.onboarded",
  "agent.updated",
  "agent.relabelled",
  "agent.deleted",
  "agent.online",
  "agent.offline",
  "command.issued",
  "command.answered",
  "command.expired",
  "job.started",
  "job.ended",
  "emulation.started",
  "emulation.ended",
  "alert.fired",
  "alert.resolved",
  "alert.acknowledged",
  "login.failing",
  "account.created",
  "account.updated",
  "account.deleted",
  "grants.changed",
  "component.down",
  "component.up",
  "subscription.failing",
  "subscription.test",
] as const;
export type EventType = (typeof EVENT_TYPES)[number];

/** From the least to the most severe. */
export const SEVERITIES = ["info", "warning", "critical"] as const;
export const Severity = z.enum(SEVERITIES);
export type Severity = z.output<typeof Severity>;

export const NetworkEvent = z
  .object({
    id: z.int().describe("Grows with every event. The cursor of `GET /api/v1/events`."),
    time: z.iso.datetime(),
    type: z.enum(EVENT_TYPES),
    severity: Severity,
    ap_id: z.string().nullable().describe("The agent that the event is about, if it is about one."),
    labels: z.record(z.string(), z.string()).describe("The labels of the agent, or of the alert, at that time."),
    actor: z.string().nullable().describe("Who caused it, as in the audit trail."),
    data: z.record(z.string(), z.unknown()).describe("Depends on the type."),
  })
  .meta({ id: "Event" });
export type NetworkEvent = z.output<typeof NetworkEvent>;
