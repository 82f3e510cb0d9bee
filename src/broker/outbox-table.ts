import { index, integer, sqliteTable, text } from "drizzle-orm/sqlite-core";

/**
 * What is to be published. A row is written together with what it belongs to, and stays until somebody beyond the broker has shown
 * that it arrived, or its time is over: that the broker has acknowledged a message does not prove that anybody heard it.
 */
export const outbox = sqliteTable(
  "outbox",
  {
    id: integer("id").primaryKey({ autoIncrement: true }),
    jobNumber: text("job_number").notNull(),
    /** Of the job's messages, from 1. */
    part: integer("part").notNull(),
    topic: text("topic").notNull(),
    /** Sealed: there may be credentials in it. */
    payload: text("payload").notNull(),
    createdAt: integer("created_at", { mode: "timestamp_ms" }).notNull(),
    /** When it is published next. */
    dueAt: integer("due_at", { mode: "timestamp_ms" }).notNull(),
    expiresAt: integer("expires_at", { mode: "timestamp_ms" }).notNull(),
    /** How often the broker has acknowledged it. */
    published: integer("published").notNull(),
  },
  (table) => [
    index("outbox_due").on(table.dueAt),
    index("outbox_expiry").on(table.expiresAt),
    index("outbox_job").on(table.jobNumber, table.part),
  ],
);
