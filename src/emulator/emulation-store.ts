import { and, eq, gte, isNull, lt, lte, or, type SQL, sql } from "drizzle-orm";
import * as z from "zod";
import { agents } from "../accounts/account-tables.ts";
import { BEYOND_EMULATED, EMULATED_PREFIX } from "../accounts/agent-names.ts";
import { type AuditActor, auditIfChanged } from "../accounts/audit.ts";
import { jobs } from "../jobs/job-table.ts";
import { IS_OPEN } from "../jobs/quotas.ts";
import { ACCESS_POINT_TYPES } from "../schemas/emulator.ts";
import { type Database, query } from "../storage/libsql.ts";
import { emulations } from "./emulation-tables.ts";

/** Emulations in libSQL, also after their jobs are gone: whose they are, when they ended, and their agents. */
export interface EmulationStore {
  find(jobNumber: string): Promise<Emulation | undefined>;
  /** Removes some of an emulation's agents; returns how many. Fewer than `REMOVED_AT_ONCE`: it has no more. */
  removeSomeAgents(jobNumber: string): Promise<number>;
  /** Records that an emulation has no agents any more. Audited the first time. */
  markRemoved(
    emulation: Pick<Emulation, "jobNumber" | "ownerId" | "owner">,
    removedAgents: number,
    by: AuditActor,
  ): Promise<void>;
  /** Registers the emulations of agents from before there was a table of emulations. */
  adopt(): Promise<void>;
  /** Records which emulations have ended, and forgets those that were removed long ago. */
  recordEnded(): Promise<void>;
  /** Emulations that ended so long ago and still have agents, the oldest first. */
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

/** An emulator can claim a part for a day, and then runs it to its end; after that and an hour no emulation runs any more. */
export const TAKEN_WITHIN_MS = 24 * 3_600_000;
const MARGIN_MS = 3_600_000;
export const latestEndMs = (createdMs: number, durationS: number): number =>
  createdMs + TAKEN_WITHIN_MS + durationS * 1_000 + MARGIN_MS;

/** Of agents: one statement takes a few milliseconds, and others come in between. */
export const REMOVED_AT_ONCE = 500;
const ENDED_AT_ONCE = 1_000;
const ADOPTED_AT_ONCE = 1_000;
/** For so long its owner can ask again for what was removed, and hears that nothing is left. */
const REMEMBERED_MS = 30 * 86_400_000;

/** By ranges of the index on `ap_id`. Several jobs may share the eight characters in it: the configuration decides. */
function isOfJob(jobNumber: string): SQL | undefined {
  const ranges = ACCESS_POINT_TYPES.map((type) => {
    const name = `${EMULATED_PREFIX}${type.toLowerCase()}-${jobNumber.slice(0, 8)}`;
    return and(gte(agents.apId, `${name}-`), lt(agents.apId, `${name}.`));
  });
  // An update of its configuration may have dropped the number.
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
      const some = database.select({ id: agents.id }).from(agents).where(isOfJob(jobNumber)).limit(REMOVED_AT_ONCE);
      const { rowsAffected } = await query(database.delete(agents).where(sql`${agents.id} in ${some}`));
      return rowsAffected;
    },

    async markRemoved({ jobNumber, ownerId, owner }, removedAgents, by) {
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
          // The name under which the sessions of emulated agents end, too.
          auditIfChanged(
            database,
            by,
            "remove emulated agents",
            `job:${jobNumber}`,
            JSON.stringify({ access_points: removedAgents, job_number: jobNumber, outcome: "removed" }),
          ),
        ]),
      );
    },

    async adopt() {
      const jobNumber = sql`json_extract(configuration, '$.job_number')`;
      await query(
        database.run(
          sql`insert into ${emulations} (job_number, owner_id, owner, access_points, created_at, ends_at)
              select found.job_number, ifnull(jobs.owner_id, ''), ifnull(jobs.owner, ''), found.access_points, found.created_at,
                found.created_at + found.duration_s * 1000 + ${TAKEN_WITHIN_MS + MARGIN_MS}
              from (
                select ${jobNumber} as job_number, count(*) as access_points, min(created_at) as created_at,
                  max(ifnull(cast(json_extract(configuration, '$.duration') as integer), 0)) as duration_s
                from agents
                where ap_id >= ${EMULATED_PREFIX} and ap_id < ${BEYOND_EMULATED} and credential_kind = 'hmac'
                  and json_type(configuration, '$.job_number') = 'text' and json_extract(configuration, '$.emulated') = 1
                  and ap_id like '${sql.raw(EMULATED_PREFIX)}%-' || substr(${jobNumber}, 1, 8) || '-%'
                  and not exists (select 1 from emulations as known where known.job_number = ${jobNumber})
                group by 1 limit ${ADOPTED_AT_ONCE}
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
          // Its emulator is gone for good: the state must not say that it runs.
          database
            .update(jobs)
            .set({ state: "failed", detail: "No emulator reported its end", updatedAt: new Date(nowMs) })
            .where(
              sql`job_number in (${running} and ends_at <= ${nowMs} limit ${ENDED_AT_ONCE}) and kind = 'emulator' and ${IS_OPEN}`,
            ),
          database.run(
            sql`update emulations set ended_at = min(${nowMs},
                  ifnull((select updated_at from jobs where jobs.job_number = emulations.job_number), ${nowMs}))
                where job_number in (${running}
                  and not exists (select 1 from jobs where jobs.job_number = emulations.job_number and ${IS_OPEN})
                  limit ${ENDED_AT_ONCE})`,
          ),
          database.delete(emulations).where(lt(emulations.removedAt, new Date(nowMs - REMEMBERED_MS))),
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
