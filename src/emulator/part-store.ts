import { and, eq, isNull, notInArray, or } from "drizzle-orm";
import * as z from "zod";
import type { Outbox } from "../broker/outbox.ts";
import type { ReportHandler } from "../jobs/callbacks.ts";
import { Conflict } from "../lib/errors.ts";
import { EmulatorReport, type PartState } from "../schemas/emulator.ts";
import { type Database, query } from "../storage/libsql.ts";
import { emulatorParts } from "./emulation-tables.ts";

/** The parts of emulator jobs: who runs each, and how far it is. */
export interface PartStore {
  /**
   * Notes what an emulator says of a part; or not, where the part is another's, or over while the emulator says that it runs, which was
   * late on its way.
   */
  note(jobNumber: string, report: EmulatorReport): Promise<{ isNoted: boolean; end: JobOutcome | undefined }>;
}

/** How a job ended all of whose parts have: where one has failed, so has the job. */
export type JobOutcome = "done" | "failed";

const OVER: EmulatorReport["state"][] = ["done", "failed"];

export function createPartStore(database: Database): PartStore {
  return {
    async note(jobNumber, { part, state, emulator }) {
      const [changed, states] = await query(
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

function endOf(states: readonly PartState[]): JobOutcome | undefined {
  if (states.includes("queued") || states.includes("running")) return undefined;
  return states.includes("failed") ? "failed" : "done";
}

/** Items that are not reports about a part pass through without effect. */
const EmulatorReports = z
  .array(z.unknown())
  .transform((items) => items.flatMap((item) => EmulatorReport.safeParse(item).data ?? []));

/** Records what an emulator reports about its parts of a job. The first emulator that reports a part owns it. */
export function createEmulatorReports(parts: PartStore, outbox: Pick<Outbox, "withdraw">): ReportHandler {
  return async (jobNumber, items) => {
    let state: "running" | JobOutcome | undefined;
    for (const report of EmulatorReports.parse(items)) {
      const noted = await parts.note(jobNumber, report);
      if (!noted.isNoted) throw new Conflict("This part of the job is another emulator's, or over");
      await outbox.withdraw(jobNumber, report.part);
      state = noted.end ?? "running";
    }
    return state;
  };
}
