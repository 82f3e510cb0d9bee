import { and, eq, isNull, notInArray, or } from "drizzle-orm";
import { type Database, reach } from "../accounts/database.ts";
import type { EmulatorReport, PartState } from "../schemas/emulator.ts";
import { emulatorParts } from "./parts-table.ts";

/** The parts of emulator jobs: who runs each, and how far it is. */
export interface EmulatorParts {
  /**
   * Notes what an emulator says of a part; or not, where the part is another's, or over while the emulator says that it runs, which was
   * late on its way.
   */
  note(jobNumber: string, report: EmulatorReport): Promise<{ isNoted: boolean; end: PartsEnd | undefined }>;
}

/** How a job ended all of whose parts have: where one has failed, so has the job. */
export type PartsEnd = "done" | "failed";

const OVER: EmulatorReport["state"][] = ["done", "failed"];

export function createEmulatorParts(database: Database): EmulatorParts {
  return {
    async note(jobNumber, { part, state, emulator }) {
      const [changed, states] = await reach(
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
            .selectDistinct({ state: emulatorParts.state })
            .from(emulatorParts)
            .where(eq(emulatorParts.jobNumber, jobNumber)),
        ]),
      );
      return { isNoted: changed.length > 0, end: endOf(states.map(({ state }) => state)) };
    },
  };
}

function endOf(states: readonly PartState[]): PartsEnd | undefined {
  if (states.includes("queued") || states.includes("running")) return undefined;
  return states.includes("failed") ? "failed" : "done";
}
