import { and, eq, isNull, notInArray, or } from "drizzle-orm";
import * as z from "zod";
import type { Outbox } from "../broker/outbox.ts";
import type { ReportHandler } from "../jobs/callbacks.ts";
import { Conflict } from "../lib/errors.ts";
import { EmulatorReport, type PartState } from "../schemas/emulator.ts";
import { type Database, query } from "../storage/libsql.ts";
import { emulatorParts } from "./emulation-tables.ts";

/** Stores the parts of emulator jobs: their emulators and states. */
export interface PartStore {
  /**
   * Records an emulator's report about a part. Does not accept it if another emulator owns the part, or if it says "running" and the part
   * has ended: such a report arrived late. Returns the outcome of the job if all its parts have ended.
   */
  recordReport(
    jobNumber: string,
    report: EmulatorReport,
  ): Promise<{ accepted: boolean; outcome?: JobOutcome | undefined }>;
}

/** The outcome of a job whose parts have all ended. It has failed if one part has failed. */
export type JobOutcome = "done" | "failed";

const TERMINAL_STATES: EmulatorReport["state"][] = ["done", "failed"];

export function createPartStore(database: Database): PartStore {
  return {
    async recordReport(jobNumber, { part, state, emulator }) {
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
                state === "running" ? notInArray(emulatorParts.state, TERMINAL_STATES) : undefined,
              ),
            )
            .returning({ part: emulatorParts.part }),
          database
            .selectDistinct({ state: emulatorParts.state })
            .from(emulatorParts)
            .where(eq(emulatorParts.jobNumber, jobNumber)),
        ]),
      );
      return { accepted: changed.length > 0, outcome: outcomeOf(states.map(({ state }) => state)) };
    },
  };
}

function outcomeOf(states: readonly PartState[]): JobOutcome | undefined {
  if (states.includes("queued") || states.includes("running")) return undefined;
  return states.includes("failed") ? "failed" : "done";
}

/** Items that are not reports about a part are ignored here. */
const EmulatorReports = z
  .array(z.unknown())
  .transform((items) => items.flatMap((item) => EmulatorReport.safeParse(item).data ?? []));

/** Creates the handler of emulators' reports. The first emulator that reports a part owns it. */
export function createEmulatorReports(parts: PartStore, outbox: Pick<Outbox, "withdraw">): ReportHandler {
  return async (jobNumber, items) => {
    let state: "running" | JobOutcome | undefined;
    for (const report of EmulatorReports.parse(items)) {
      const { accepted, outcome } = await parts.recordReport(jobNumber, report);
      if (!accepted) throw new Conflict("Another emulator runs this part of the job, or the part has ended");
      await outbox.withdraw(jobNumber, report.part);
      state = outcome ?? "running";
    }
    return state;
  };
}
