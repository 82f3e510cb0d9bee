import { sql } from "drizzle-orm";
import { index, integer, primaryKey, real, sqliteTable, text, uniqueIndex } from "drizzle-orm/sqlite-core";
import type { Labels } from "../lib/selectors.ts";
import type { RuleSpec } from "../schemas/alerts/rule.ts";
import { SEVERITIES } from "../schemas/events.ts";

const timestamp = (name: string) => integer(name, { mode: "timestamp_ms" });

export const alertRules = sqliteTable("alert_rules", {
  id: text("id").primaryKey(),
  name: text("name").notNull().unique(),
  spec: text("spec", { mode: "json" }).$type<RuleSpec>().notNull(),
  isEnabled: integer("is_enabled", { mode: "boolean" }).notNull(),
  /** Incremented by every change, so that shards notice it. */
  version: integer("version").notNull(),
  createdBy: text("created_by").notNull(),
  updatedAt: timestamp("updated_at").notNull(),
});

/** Alerts that fire or have fired. A row is written in the same transaction as its event. */
export const alerts = sqliteTable(
  "alerts",
  {
    /** Random. A shard chooses it when the alert fires, and may send the alert again. */
    id: text("id").primaryKey(),
    ruleId: text("rule_id").notNull(),
    rule: text("rule").notNull(),
    severity: text("severity", { enum: SEVERITIES }).notNull(),
    /** Null for an alert about a group of agents, such as a site. */
    apId: text("ap_id"),
    /** The label value of the group. */
    groupValue: text("group_value"),
    /** The labels of the agent, or of the group. Scopes depend on them, so those of the rule are apart. */
    labels: text("labels", { mode: "json" }).$type<Labels>().notNull(),
    ruleLabels: text("rule_labels", { mode: "json" }).$type<Labels>().notNull(),
    ownerId: text("owner_id"),
    /** For people, with the values at that time. */
    text: text("text").notNull(),
    /** The value that explains it. Null if there is none. */
    value: real("value"),
    firedAt: timestamp("fired_at").notNull(),
    resolvedAt: timestamp("resolved_at"),
    acknowledgedAt: timestamp("acknowledged_at"),
    acknowledgedBy: text("acknowledged_by"),
    /** Whether its event was held back because of a silence. */
    isSilenced: integer("is_silenced", { mode: "boolean" }).notNull().default(false),
  },
  (table) => [
    index("alerts_open").on(table.firedAt).where(sql`resolved_at is null`),
    // A group has one alert of a rule at a time.
    uniqueIndex("alerts_open_groups")
      .on(table.ruleId, table.groupValue)
      .where(sql`resolved_at is null and group_value is not null`),
    index("alerts_silenced").on(table.id).where(sql`is_silenced and resolved_at is null`),
    index("alerts_agent").on(table.apId, table.firedAt),
    index("alerts_fired").on(table.firedAt),
  ],
);

/** Agents for which the condition of a rule about groups holds. The share of a group's agents decides whether its alert fires. */
export const alertMembers = sqliteTable(
  "alert_members",
  {
    ruleId: text("rule_id").notNull(),
    apId: text("ap_id").notNull(),
    groupValue: text("group_value").notNull(),
  },
  (table) => [
    primaryKey({ columns: [table.ruleId, table.apId] }),
    index("alert_members_group").on(table.ruleId, table.groupValue),
  ],
);

/** Holds back the notifications of alerts whose agents a selector selects. */
export const silences = sqliteTable("silences", {
  id: text("id").primaryKey(),
  selector: text("selector").notNull(),
  reason: text("reason").notNull(),
  /** The account whose grants limit the agents: its id, and its name in the form of the audit trail. */
  authorId: text("author_id").notNull(),
  author: text("author").notNull(),
  createdAt: timestamp("created_at").notNull(),
  until: timestamp("until").notNull(),
});
