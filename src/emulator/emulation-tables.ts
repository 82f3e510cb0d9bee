import { sql } from "drizzle-orm";
import { index, integer, primaryKey, sqliteTable, text } from "drizzle-orm/sqlite-core";
import { PART_STATES } from "../schemas/emulator.ts";

/**
 * Emulations, with their owners, numbers of access points, and ends. A row outlives the row of its job, so that the owner can remove the
 * access points at any time and the service removes them at the end of their retention.
 */
export const emulations = sqliteTable(
  "emulations",
  {
    jobNumber: text("job_number").primaryKey(),
    /** As in `jobs`. Empty if the job was deleted before this table existed. */
    ownerId: text("owner_id").notNull(),
    owner: text("owner").notNull(),
    accessPoints: integer("access_points").notNull(),
    createdAt: integer("created_at", { mode: "timestamp_ms" }).notNull(),
    /** The latest time at which the emulation can still run. */
    endsAt: integer("ends_at", { mode: "timestamp_ms" }).notNull(),
    /** Start of the retention. */
    endedAt: integer("ended_at", { mode: "timestamp_ms" }),
    removedAt: integer("removed_at", { mode: "timestamp_ms" }),
  },
  (table) => [
    index("emulations_running").on(table.ownerId).where(sql`ended_at is null`),
    index("emulations_kept").on(table.endedAt).where(sql`removed_at is null`),
    index("emulations_removed").on(table.removedAt),
  ],
);

/** The parts of emulator jobs. Each part is one message to the emulators. */
export const emulatorParts = sqliteTable(
  "emulator_parts",
  {
    jobNumber: text("job_number").notNull(),
    part: integer("part").notNull(),
    state: text("state", { enum: PART_STATES }).notNull(),
    /** The emulator that runs it: the first one that reported it. */
    emulator: text("emulator"),
  },
  (table) => [primaryKey({ columns: [table.jobNumber, table.part] })],
);
