import { sql } from "drizzle-orm";
import { index, integer, sqliteTable, text } from "drizzle-orm/sqlite-core";
import { JOB_KINDS, JOB_STATES } from "../schemas/job.ts";

/** Jobs. Their messages are in their Durable Objects; each object deletes its row when it ends. */
export const jobs = sqliteTable(
  "jobs",
  {
    jobNumber: text("job_number").primaryKey(),
    kind: text("kind", { enum: JOB_KINDS }).notNull(),
    state: text("state", { enum: JOB_STATES }).notNull(),
    /** The account's id: a later account with the same name is a different owner. */
    ownerId: text("owner_id").notNull(),
    /** For people to read: `user:…`, `agent:…` or `app:…`. */
    owner: text("owner").notNull(),
    /** Whether the owner was an administrator when the job was created. */
    byAdmin: integer("by_admin", { mode: "boolean" }).notNull().default(false),
    /** The agent that the job concerns. It may post to the job. */
    target: text("target"),
    detail: text("detail").notNull(),
    /** As last reported by the job's Durable Object, which has the current number. */
    messages: integer("messages").notNull(),
    createdAt: integer("created_at", { mode: "timestamp_ms" }).notNull(),
    updatedAt: integer("updated_at", { mode: "timestamp_ms" }).notNull(),
    /** When a live stream of an agent's data ends; absent for all other jobs. */
    endsAt: integer("ends_at", { mode: "timestamp_ms" }),
  },
  (table) => [
    index("jobs_owner").on(table.ownerId, table.createdAt),
    index("jobs_created").on(table.createdAt),
    index("jobs_updated").on(table.updatedAt),
    index("jobs_target").on(table.target, table.kind, table.createdAt),
    // Holds open jobs only: every new job counts them for the quotas, and ended jobs must not slow that down.
    index("jobs_open").on(table.ownerId, table.state, table.endsAt).where(sql`state in ('queued', 'running')`),
  ],
);
