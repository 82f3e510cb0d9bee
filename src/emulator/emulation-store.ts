import { and, eq, gte, isNull, lt, lte, or, type SQL, sql } from "drizzle-orm";
import * as z from "zod";
import { agents } from "../accounts/account-tables.ts";
import { type AuditActor, auditIfChanged } from "../accounts/audit.ts";
import { jobs } from "../jobs/job-table.ts";
import { IS_OPEN } from "../jobs/quotas.ts";
import { BEYOND_EMULATED, EMULATED_PREFIX } from "../schemas/agent.ts";
import { ACCESS_POINT_TYPES } from "../schemas/emulator.ts";
import { type Database, query } from "../storage/libsql.ts";
import { emulations } from "./emulation-tables.ts";

/** Stores emulations in libSQL: owner, end and agents. A row outlives its job. */
export interface EmulationStore {
  find(jobNumber: string): Promise<Emulation | undefined>;
  /** Removes a batch of an emulation's agents and returns their number. Fewer than `REMOVAL_BATCH_SIZE` means that none is left. */
  removeSomeAgents(jobNumber: string): Promise<number>;
  /** Records that an emulation has no more agents. Writes to the audit trail the first time only. */
  markRemoved(
    emulation: Pick<Emulation, "jobNumber" | "ownerId" | "owner">,
    removedAgents: number,
    actor: AuditActor,
  ): Promise<void>;
  /** Inserts emulations for agents that are older than the table of emulations. */
  insertMissing(): Promise<void>;
  /** Records which emulations have ended, and deletes the rows of those that were removed long ago. */
  recordEnded(): Promise<void>;
  /** Returns emulations that ended at least this long ago and still have agents, oldest first. */
  endedFor(retentionMs: number, limit: number): Promise<Emulation[]>;
}

const Emulation = z.object({
  jobNumber: z.string(),
  ownerId: z.string(),
  owner: z.string(),
  endedAt: z.date().nullable(),
  removedAt: z.date().nullable(),
});
export type Emulation = z.output<typeof Emulation>;

/** Time within which an emulator can claim a part. It then runs the part to its end. */
export const CLAIM_WINDOW_MS = 24 * 3_600_000;
const MARGIN_MS = 3_600_000;

/** Returns the latest time at which an emulation can still run. */
export const latestEndMs = (createdMs: number, durationS: number): number =>
  createdMs + CLAIM_WINDOW_MS + durationS * 1_000 + MARGIN_MS;

/** Agents per statement. Each statement takes a few milliseconds, so that other requests can run in between. */
export const REMOVAL_BATCH_SIZE = 500;
const MAX_ENDED = 1_000;
const MAX_INSERTED = 1_000;
/** Time for which a repeated removal by the owner succeeds with 0 agents. */
const REMOVED_RETENTION_MS = 30 * 86_400_000;

/**
 * Returns the condition for the agents of a job. It uses ranges of the index on `ap_id`. Several jobs may share the eight characters in
 * the name, so the configuration decides.
 */
function belongsToJob(jobNumber: string): SQL | undefined {
  const ranges = ACCESS_POINT_TYPES.map((type) => {
    const name = `${EMULATED_PREFIX}${type.toLowerCase()}-${jobNumber.slice(0, 8)}`;
    return and(gte(agents.apId, `${name}-`), lt(agents.apId, `${name}.`));
  });
  // An update of the configuration may have removed the job number.
  return and(
    or(...ranges),
    sql`ifnull(json_extract(${agents.configuration}, '$.job_number'), ${jobNumber}) = ${jobNumber}`,
  );
}

export function createEmulationStore(database: Database, now: () => number = Date.now): EmulationStore {
  return {
    async find(jobNumber) {
      const rows = await query(database.select().from(emulations).where(eq(emulations.jobNumber, jobNumber)));
      return rows[0] === undefined ? undefined : Emulation.parse(rows[0]);
    },

    async removeSomeAgents(jobNumber) {
      const batch = database
        .select({ id: agents.id })
        .from(agents)
        .where(belongsToJob(jobNumber))
        .limit(REMOVAL_BATCH_SIZE);
      const { rowsAffected } = await query(database.delete(agents).where(sql`${agents.id} in ${batch}`));
      return rowsAffected;
    },

    async markRemoved({ jobNumber, ownerId, owner }, removedAgents, actor) {
      const at = new Date(now());
      const times = { createdAt: at, endsAt: at, endedAt: at, removedAt: at };
      await query(
        database.batch([
          database
            .insert(emulations)
            .values({ jobNumber, ownerId, owner, accessPoints: 0, ...times })
            .onConflictDoUpdate({
              target: emulations.jobNumber,
              set: { removedAt: at, endedAt: sql`coalesce(${emulations.endedAt}, ${at.getTime()})` },
              setWhere: isNull(emulations.removedAt),
            }),
          // Readers of the audit trail see the object `job:…` and end the logins and broker sessions of the agents.
          auditIfChanged(
            database,
            actor,
            "remove emulated agents",
            `job:${jobNumber}`,
            JSON.stringify({ access_points: removedAgents, job_number: jobNumber, outcome: "removed" }),
          ),
        ]),
      );
    },

    async insertMissing() {
      const jobNumber = sql`json_extract(configuration, '$.job_number')`;
      await query(
        database.run(
          sql`insert into ${emulations} (job_number, owner_id, owner, access_points, created_at, ends_at)
              select found.job_number, ifnull(jobs.owner_id, ''), ifnull(jobs.owner, ''), found.access_points, found.created_at,
                found.created_at + found.duration_s * 1000 + ${CLAIM_WINDOW_MS + MARGIN_MS}
              from (
                select ${jobNumber} as job_number, count(*) as access_points, min(created_at) as created_at,
                  max(ifnull(cast(json_extract(configuration, '$.duration') as integer), 0)) as duration_s
                from agents
                where ap_id >= ${EMULATED_PREFIX} and ap_id < ${BEYOND_EMULATED} and credential_kind = 'hmac'
                  and json_type(configuration, '$.job_number') = 'text' and json_extract(configuration, '$.emulated') = 1
                  and ap_id like '${sql.raw(EMULATED_PREFIX)}%-' || substr(${jobNumber}, 1, 8) || '-%'
                  and not exists (select 1 from emulations as known where known.job_number = ${jobNumber})
                group by 1 limit ${MAX_INSERTED}
              ) as found left join jobs on jobs.job_number = found.job_number
              where true on conflict do nothing`,
        ),
      );
    },

    async recordEnded() {
      const nowMs = now();
      const running = sql`select job_number from emulations where ended_at is null`;
      await query(
        database.batch([
          // No emulator runs these any more, so their jobs must not stay open.
          database
            .update(jobs)
            .set({ state: "failed", detail: "No emulator reported its end", updatedAt: new Date(nowMs) })
            .where(
              sql`job_number in (${running} and ends_at <= ${nowMs} limit ${MAX_ENDED}) and kind = 'emulator' and ${IS_OPEN}`,
            ),
          database.run(
            sql`update emulations set ended_at = min(${nowMs},
                  ifnull((select updated_at from jobs where jobs.job_number = emulations.job_number), ${nowMs}))
                where job_number in (${running}
                  and not exists (select 1 from jobs where jobs.job_number = emulations.job_number and ${IS_OPEN})
                  limit ${MAX_ENDED})`,
          ),
          database.delete(emulations).where(lt(emulations.removedAt, new Date(nowMs - REMOVED_RETENTION_MS))),
        ]),
      );
    },

    async endedFor(retentionMs, limit) {
      const rows = await query(
        database
          .select()
          .from(emulations)
          .where(and(isNull(emulations.removedAt), lte(emulations.endedAt, new Date(now() - retentionMs))))
          .orderBy(emulations.endedAt)
          .limit(limit),
      );
      return z.array(Emulation).parse(rows);
    },
  };
}
