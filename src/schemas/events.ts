import * as z from "zod";
import { Selector } from "./fleet/selector.ts";
import { customIssue, integer, QueryFlag } from "./primitives.ts";

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
  "command.cancelled",
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
  "group.changed",
  "enrolment_token.changed",
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

/** A list of types, separated by commas. */
const Types = z
  .string()
  .transform((text) => text.split(",").map((type) => type.trim()))
  .superRefine((types, context) => {
    const known = new Set<string>(EVENT_TYPES);
    for (const type of types.filter((type) => !known.has(type)).slice(0, 5)) {
      context.addIssue(customIssue("event_type", `Value error, '${type.slice(0, 50)}' is not a type of events`));
    }
  })
  .transform((types) => EVENT_TYPES.filter((type) => types.includes(type)));

/** Which events to read, and from where. */
export const EventStreamQuery = z.object({
  after: integer(z.int().gte(0))
    .optional()
    .describe("The `id` of the last event that you have. 0: from the oldest event. Default: only events from now on."),
  types: Types.optional().describe("Only these types, separated by commas. Default: all."),
  selector: Selector.optional(),
  agent: z.string().max(200).optional().describe("Only events about the agent with this `ap_id`."),
  severity: Severity.default("info").describe("Only events that are at least as severe."),
});

export const MAX_WAIT_S = 25;

export const EventsQuery = EventStreamQuery.extend({
  limit: integer(z.int().gt(0).lte(1000)).default(100),
  wait: integer(z.int().gte(0).lte(MAX_WAIT_S))
    .default(0)
    .describe("Seconds to wait for an event if there is none. The response arrives with the first one."),
  newest: QueryFlag.default(false).describe(
    "Returns the last events that there are, among the newest 1,000 of these types, instead of those after a cursor.",
  ),
}).superRefine(({ after, newest }, context) => {
  if (!newest || after === undefined) return;
  context.addIssue({ ...customIssue("value_error", "Value error, give either after or newest"), path: ["newest"] });
});

export const EventPage = z
  .object({
    events: z.array(NetworkEvent).describe("In the order of their ids."),
    next_after: z.int().describe("`after` of the next request. It also grows past events that you do not see."),
    has_more: z.boolean().describe("Whether there may be more events already. If so, `events` may be empty."),
  })
  .meta({ id: "EventPage" });
export type EventPage = z.output<typeof EventPage>;

export const EVENT_PROTOCOL = "event-stream.v1";

/** Limits of the readers of the event log. */
export const EVENT_LIMITS = {
  /** Open sockets, and requests that wait, per account and isolate of the Worker. */
  readersPerAccount: 16,
  /** Events that a socket is sent without an acknowledgement. */
  unacknowledged: 1_000,
  /** How long a socket may have that many. */
  stalledMs: 60_000,
};

export const EventAcknowledgement = z
  .strictObject({ ack: z.int().nonnegative().describe("The `id` up to which you have received all events.") })
  .meta({
    id: "EventAcknowledgement",
    description: "The service sends at most 1,000 events that are not acknowledged.",
  });
