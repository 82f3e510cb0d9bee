import { index, integer, sqliteTable, text } from "drizzle-orm/sqlite-core";

/**
 * Messages to publish. A row is inserted in the same transaction as its job. It stays until the receiver confirms the message or the
 * message expires: the broker's acknowledgement does not prove that a subscriber received it.
 */
export const outbox = sqliteTable(
  "outbox",
  {
    id: integer("id").primaryKey({ autoIncrement: true }),
    jobNumber: text("job_number").notNull(),
    /** Number of the message within its job, from 1. */
    part: integer("part").notNull(),
    topic: text("topic").notNull(),
    /** Encrypted, because it may contain credentials. */
    payload: text("payload").notNull(),
    createdAt: integer("created_at", { mode: "timestamp_ms" }).notNull(),
    /** Time of the next publication. */
    dueAt: integer("due_at", { mode: "timestamp_ms" }).notNull(),
    expiresAt: integer("expires_at", { mode: "timestamp_ms" }).notNull(),
    /** Number of times that the broker has acknowledged it. */
    published: integer("published").notNull(),
  },
  (table) => [
    index("outbox_due").on(table.dueAt),
    index("outbox_expiry").on(table.expiresAt),
    index("outbox_job").on(table.jobNumber, table.part),
  ],
);
