import * as z from "zod";
import { EVENT_TYPES, Severity } from "./events.ts";
import { SelectorText } from "./fleet/selector.ts";
import { Description, Email, integer } from "./primitives.ts";

/** Who receives which events, and how far their delivery has come. */

export const SUBSCRIPTION_LIMITS = { perAccount: 20, total: 1_000 };
/** Events after the cursor that `backlog` looks at. */
export const MAX_BACKLOG = 1_000;

export const OWNER_KINDS = ["user", "app"] as const;
export const TARGET_KINDS = ["webhook", "mqtt", "email", "alertmanager"] as const;
export type TargetKind = (typeof TARGET_KINDS)[number];

/** Empty lists and texts select everything. */
export const SubscriptionFilter = z
  .object({
    types: z.array(z.enum(EVENT_TYPES)).max(EVENT_TYPES.length).default([]).describe("Empty: all types."),
    selector: SelectorText.default(""),
    severity: Severity.default("info").describe("The least severe that counts."),
  })
  .meta({ id: "SubscriptionFilter" });
export type SubscriptionFilter = z.output<typeof SubscriptionFilter>;

const HttpAddress = z
  .string()
  .max(2_000)
  .refine(
    (text) => /^https?:\/\//i.test(text) && URL.canParse(text),
    "must be a URL that begins with http:// or https://",
  )
  .describe("A URL. Its user name and password are stored encrypted, and no response contains them.");

export const TargetSpec = z
  .discriminatedUnion("kind", [
    z.object({ kind: z.literal("webhook"), address: HttpAddress }),
    z.object({ kind: z.literal("alertmanager"), address: HttpAddress }),
    z.object({
      kind: z.literal("email"),
      address: Email.optional().describe("Default: the caller's own address. Only administrators may set another one."),
    }),
    z.object({ kind: z.literal("mqtt") }),
  ])
  .meta({ id: "SubscriptionTargetSpec" });
export type TargetSpec = z.output<typeof TargetSpec>;

const Name = Description.min(1).max(100);

export const SubscriptionCreate = z
  .object({
    name: Name,
    filter: SubscriptionFilter.default({ types: [], selector: "", severity: "info" }),
    target: TargetSpec,
  })
  .meta({ id: "SubscriptionCreate" });
export type SubscriptionCreate = z.output<typeof SubscriptionCreate>;

export const SubscriptionUpdate = z
  .object({
    name: Name.optional(),
    filter: SubscriptionFilter.optional().describe("Replaces the filter completely."),
    target: TargetSpec.optional().describe("The kind cannot change. A new address ends the back-off."),
  })
  .meta({ id: "SubscriptionUpdate" });
export type SubscriptionUpdate = z.output<typeof SubscriptionUpdate>;

const time = () => z.iso.datetime().nullable();

export const Subscription = z
  .object({
    id: z.string(),
    name: z.string(),
    owner: z.string().describe("The account whose grants limit the events."),
    filter: SubscriptionFilter,
    target: z.object({
      kind: z.enum(TARGET_KINDS),
      address: z.string().describe("The URL without credentials, the e-mail address, or the MQTT topic."),
      has_credentials: z.boolean().describe("Whether the URL was given with a user name or a password."),
    }),
    created_at: z.iso.datetime(),
    cursor: z.int().describe("The id of the last event that was delivered or skipped."),
    backlog: z
      .int()
      .describe(
        `Events after the cursor with the types and the severity of the filter, among the next ${MAX_BACKLOG}.`,
      ),
    delivered_at: time().describe("Time of the last delivery."),
    last_error: z.string().nullable().describe("Why the last attempt failed. Null after a success."),
    failing_since: time().describe("Time of the first failure since the last success."),
    next_attempt_at: time().describe("Set while the delivery waits after a failure."),
    stopped_at: time().describe("Set when the delivery was given up. `POST …/resume` starts it again."),
  })
  .meta({ id: "Subscription" });
export type Subscription = z.output<typeof Subscription>;

export const NewSubscription = Subscription.extend({
  secret: z
    .string()
    .nullable()
    .describe("The key of a webhook's signatures (Standard Webhooks). It is not shown again. Null for other targets."),
}).meta({ id: "NewSubscription" });
export type NewSubscription = z.output<typeof NewSubscription>;

export const SubscriptionTest = z
  .object({ delivered: z.boolean(), error: z.string().nullable().describe("Why the target did not accept the event.") })
  .meta({ id: "SubscriptionTest" });
export type SubscriptionTest = z.output<typeof SubscriptionTest>;

export const SubscriptionPath = z.object({ id: z.string().max(64) });
export const SubscriptionsQuery = z.object({
  limit: integer(z.int().gt(0).lte(SUBSCRIPTION_LIMITS.total)).default(100),
  offset: integer(z.int().gte(0)).default(0),
});
export type SubscriptionsQuery = z.output<typeof SubscriptionsQuery>;
