import { and, count, eq, isNull, notInArray, or } from "drizzle-orm";
import { type Database, reach } from "../accounts/database.ts";
import type { EmulatorReport } from "../schemas/emulator.ts";
import { emulatorParts } from "./parts-table.ts";

/** The parts of emulator jobs: who runs each, and how far it is. */
export interface EmulatorParts {
  /**
   * Notes what an emulator says of a part, and whether all parts of the job have come to an end; or not, where the part is another's, or
   * over while the emulator says that it runs, which was late on its way.
   */
  note(jobNumber: string, report: EmulatorReport): Promise<{ isNoted: boolean; isAllOver: boolean }>;
}

const OVER: EmulatorReport["state"][] = ["done", "failed"];

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
                state === "running" ? notInArray(emulatorParts.state, OVER) : undefined,
              ),
            )
            .returning({ part: emulatorParts.part }),
          database
            .select({ parts: count() })
            .from(emulatorParts)
            .where(and(eq(emulatorParts.jobNumber, jobNumber), notInArray(emulatorParts.state, OVER))),
        ]),
      );
      return { isNoted: changed.length > 0, isAllOver: left?.parts === 0 };
    },
  };
}
