import { and, count, eq, isNull, ne, or } from "drizzle-orm";
import { type Database, reach } from "../accounts/database.ts";
import type { EmulatorReport } from "../schemas/emulator.ts";
import { emulatorParts } from "./parts-table.ts";

/** The parts of emulator jobs: who runs each, and how far it is. */
export interface EmulatorParts {
  /** Notes what an emulator says of a part; whether the part is its own, and whether all parts of the job have come to an end. */
  note(jobNumber: string, report: EmulatorReport): Promise<{ isOwn: boolean; isAllOver: boolean }>;
}

export function createEmulatorParts(database: Database): EmulatorParts {
  return {
    async note(jobNumber, { part, state, emulator }) {
      const [changed, [left]] = await reach(
        database.batch([
          database
            .update(emulatorParts)
            .set({ state, emulator })
            .where(
              and(
                eq(emulatorParts.jobNumber, jobNumber),
                eq(emulatorParts.part, part),
                or(isNull(emulatorParts.emulator), eq(emulatorParts.emulator, emulator)),
              ),
            )
            .returning({ part: emulatorParts.part }),
          database
            .select({ parts: count() })
            .from(emulatorParts)
            .where(
              and(
                eq(emulatorParts.jobNumber, jobNumber),
                ne(emulatorParts.state, "done"),
                ne(emulatorParts.state, "failed"),
              ),
            ),
        ]),
      );
      return { isOwn: changed.length > 0, isAllOver: left?.parts === 0 };
    },
  };
}
