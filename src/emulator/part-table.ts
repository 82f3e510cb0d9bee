import { integer, primaryKey, sqliteTable, text } from "drizzle-orm/sqlite-core";
import { PART_STATES } from "../schemas/emulator.ts";

/** The parts of emulator jobs, each of which is one message to those who run emulated access points. */
export const emulatorParts = sqliteTable(
  "emulator_parts",
  {
    jobNumber: text("job_number").notNull(),
    part: integer("part").notNull(),
    state: text("state", { enum: PART_STATES }).notNull(),
    /** Who runs it: the first one to say so. */
    emulator: text("emulator"),
  },
  (table) => [primaryKey({ columns: [table.jobNumber, table.part] })],
);
