import { sql } from "drizzle-orm";
import { index, integer, sqliteTable, text } from "drizzle-orm/sqlite-core";
import type { Labels } from "../lib/selectors.ts";
import { EVENT_TYPES, SEVERITIES } from "../schemas/events.ts";
import { OWNER_KINDS, type SubscriptionFilter, TARGET_KINDS } from "../schemas/subscriptions.ts";

const timestamp = (name: string) => integer(name, { mode: "timestamp_ms" });

/** The event log. Ids grow in the order of writing, because libSQL has one writer: a reader never sees a smaller id later. */
export const events = sqliteTable(
  "events",
  {
    id: integer("id").primaryKey({ autoIncrement: true }),
    at: timestamp("at").notNull(),
    type: text("type", { enum: EVENT_TYPES }).notNull(),
    severity: text("severity", { enum: SEVERITIES }).notNull(),
    apId: text("ap_id"),
    /**
     * Labels at that time, so that grants and selectors also apply to agents that were deleted since. If an event about an agent is inserted
     * without labels, a trigger copies them and the owner from the agent.
     */
    labels: text("labels", { mode: "json" }).$type<Labels>().notNull().default({}),
    /** The account that emulates the agent. If the event is about no agent: the account that sees it, in addition to administrators. */
    ownerId: text("owner_id"),
    actor: text("actor"),
    data: text("data", { mode: "json" }).$type<Record<string, unknown>>().notNull().default({}),
    /** Names an event that a shard may send again, such as `shard-3/172`. Null for events that a transaction of libSQL causes. */
    source: text("source").unique(),
  },
  (table) => [
    index("events_type").on(table.type, table.id),
    index("events_agent").on(table.apId, table.id).where(sql`ap_id is not null`),
    index("events_age").on(table.at),
  ],
);

/** Who receives which events, and how far the delivery has come. */
export const subscriptions = sqliteTable(
  "subscriptions",
  {
    id: text("id").primaryKey(),
    name: text("name").notNull(),
    /** The account whose grants limit the events: its id, and its name for people. */
    ownerId: text("owner_id").notNull(),
    owner: text("owner").notNull(),
    ownerKind: text("owner_kind", { enum: OWNER_KINDS }).notNull(),
    /** Its selector is as the author wrote it, and may refer to groups. */
    filter: text("filter", { mode: "json" }).$type<SubscriptionFilter>().notNull(),
    kind: text("kind", { enum: TARGET_KINDS }).notNull(),
    /** The URL without credentials, the topic or the e-mail address. */
    address: text("address").notNull(),
    /** The key of a webhook's signatures and the credentials of its server. Encrypted for the id. */
    sealedSecret: text("sealed_secret"),
    hasCredentials: integer("has_credentials", { mode: "boolean" }).notNull().default(false),
    createdAt: timestamp("created_at").notNull(),
    /** Incremented by every change that a caller makes, so that the delivery notices it. */
    revision: integer("revision").notNull().default(1),
    /** The id of the last event that was delivered or skipped. */
    cursor: integer("cursor").notNull(),
    /** When to try again. Null: as soon as there is an event. */
    dueAt: timestamp("due_at"),
    /** Number of attempts since the last success. */
    failures: integer("failures").notNull().default(0),
    /** When the first of these attempts failed. */
    failingSince: timestamp("failing_since"),
    lastError: text("last_error"),
    deliveredAt: timestamp("delivered_at"),
    /** Set when the delivery is given up, until the owner resumes it. */
    stoppedAt: timestamp("stopped_at"),
  },
  (table) => [index("subscriptions_owner").on(table.ownerId)],
);
