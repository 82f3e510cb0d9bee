import { sql } from "drizzle-orm";
import { index, integer, sqliteTable, text } from "drizzle-orm/sqlite-core";
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
    /** Names the firing, such as `<rule>/<ap_id>/<time>`, so that a shard may send it again. */
    id: text("id").primaryKey(),
    ruleId: text("rule_id").notNull(),
    rule: text("rule").notNull(),
    severity: text("severity", { enum: SEVERITIES }).notNull(),
    /** Null for an alert about a group of agents, such as a site. */
    apId: text("ap_id"),
    /** The label value of the group. */
    groupValue: text("group_value"),
    labels: text("labels", { mode: "json" }).$type<Labels>().notNull(),
    ownerId: text("owner_id"),
    /** For people, with the values at that time. */
    text: text("text").notNull(),
    firedAt: timestamp("fired_at").notNull(),
    resolvedAt: timestamp("resolved_at"),
    acknowledgedAt: timestamp("acknowledged_at"),
    acknowledgedBy: text("acknowledged_by"),
    /** Whether its event was held back because of a silence. */
    isSilenced: integer("is_silenced", { mode: "boolean" }).notNull().default(false),
  },
  (table) => [
    index("alerts_open").on(table.ruleId, table.apId).where(sql`resolved_at is null`),
    index("alerts_agent").on(table.apId, table.firedAt),
    index("alerts_fired").on(table.firedAt),
  ],
);

/** Holds back the notifications of alerts whose agents a selector selects. */
export const silences = sqliteTable("silences", {
  id: text("id").primaryKey(),
  selector: text("selector").notNull(),
  reason: text("reason").notNull(),
  author: text("author").notNull(),
  createdAt: timestamp("created_at").notNull(),
  until: timestamp("until").notNull(),
});
