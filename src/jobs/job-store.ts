import { and, count, desc, eq, inArray, lt, notInArray, sql } from "drizzle-orm";
import * as z from "zod";
import { audit } from "../accounts/account-tables.ts";
import { type AuditActor, actorText, type End, endAction } from "../accounts/audit.ts";
import type { Actor } from "../auth/identity.ts";
import { JOB_KINDS, JOB_STATES, type JobKind, type JobState } from "../schemas/job.ts";
import { type Database, query } from "../storage/libsql.ts";
import { jobs } from "./job-table.ts";
import { exceededQuota, hasRoom, NO_QUOTAS, type Quotas, usedUnless } from "./quotas.ts";

/** Jobs in libSQL: owner, target and state of each. Their messages are in their Durable Objects. */

const JobRow = z.object({
  jobNumber: z.string(),
  kind: z.enum(JOB_KINDS),
  state: z.enum(JOB_STATES),
  ownerId: z.string(),
  owner: z.string(),
  target: z.string().nullable(),
  detail: z.string(),
  messages: z.int(),
  createdAt: z.date(),
  updatedAt: z.date(),
});
export type JobRow = z.output<typeof JobRow>;

const CountedState = z.object({ state: z.enum(JOB_STATES), jobs: z.int() });

export interface NewJob extends Pick<JobRow, "jobNumber" | "kind" | "state" | "ownerId" | "owner" | "target"> {
  /** When a live stream of an agent's data ends. */
  endsMs?: number | undefined;
}

/** Returns the columns that name a job's owner. */
export const ownerOf = ({ id, kind, name }: Actor) => ({
  ownerId: id,
  owner: `${kind === "admin" ? "user" : kind}:${name}`,
});

export interface JobStore {
  /** Creates a job unless the number exists, and returns the stored one. Throws `QuotaExceeded` if the job exceeds a quota. */
  insert(job: NewJob): Promise<JobRow>;
  find(jobNumber: string): Promise<JobRow | undefined>;
  list(filter: JobFilter): Promise<JobRow[]>;
  /**
   * Updates a job and returns its state afterwards, if the job exists. The first terminal state wins, but a job that is done or has
   * failed can still be cancelled. Audits the end of a command or an emulation once, if `by` is given.
   */
  update(
    jobNumber: string,
    change: { state?: JobState; detail?: string; messages?: number },
    by?: AuditActor,
  ): Promise<JobState | undefined>;
  remove(jobNumber: string): Promise<void>;
  countByState(): Promise<Map<JobState, number>>;
}

export interface JobFilter {
  ownerId?: string | undefined;
  kind?: JobKind | undefined;
  state?: JobState | undefined;
  limit: number;
  offset: number;
}

/** A job's Durable Object updates its row at least once an hour. An older row has no object any more. */
const ORPHANED_MS = 48 * 3_600_000;

export function createJobStore(
  database: Database,
  now: () => number = () => Date.now(),
  quotas: Quotas = NO_QUOTAS,
): JobStore {
  const find = async (jobNumber: string): Promise<JobRow | undefined> => {
    const [row] = await query(database.select().from(jobs).where(eq(jobs.jobNumber, jobNumber)));
    return row === undefined ? undefined : JobRow.parse(row);
  };

  return {
    find,

    async insert({ jobNumber, kind, state, ownerId, owner, target, endsMs }) {
      const nowMs = now();
      const demand = { ownerId, nowMs, jobs: 1, endsMs };
      const isStored = sql`exists (select 1 from ${jobs} where job_number = ${jobNumber})`;
      const [, , found, used] = await query(
        database.batch([
          database.delete(jobs).where(lt(jobs.updatedAt, new Date(nowMs - ORPHANED_MS))),
          database.run(
            sql`insert into ${jobs}
                  (job_number, kind, state, owner_id, owner, target, detail, messages, created_at, updated_at, ends_at)
                select ${jobNumber}, ${kind}, ${state}, ${ownerId}, ${owner}, ${target}, '', 0, ${nowMs}, ${nowMs}, ${endsMs ?? null}
                where ${hasRoom(demand, quotas)} on conflict do nothing`,
          ),
          database.select().from(jobs).where(eq(jobs.jobNumber, jobNumber)),
          database.all(usedUnless(isStored, demand, quotas)),
        ]),
      );
      if (found[0] === undefined) throw exceededQuota(demand, quotas, used) ?? new Error("The job was not stored");
      return JobRow.parse(found[0]);
    },

    async list({ ownerId, kind, state, limit, offset }) {
      const rows = await query(
        database
          .select()
          .from(jobs)
          .where(
            and(
              ownerId === undefined ? undefined : eq(jobs.ownerId, ownerId),
              kind === undefined ? undefined : eq(jobs.kind, kind),
              state === undefined ? undefined : eq(jobs.state, state),
            ),
          )
          .orderBy(desc(jobs.createdAt), desc(jobs.jobNumber))
          .limit(limit)
          .offset(offset),
      );
      return z.array(JobRow).parse(rows);
    },

    async update(jobNumber, change, by) {
      const isJob = eq(jobs.jobNumber, jobNumber);
      const isOpen =
        change.state === undefined || change.state === "cancelled"
          ? notInArray(jobs.state, ["cancelled", "expired"])
          : inArray(jobs.state, ["queued", "running"]);
      const update = database
        .update(jobs)
        .set({ ...change, updatedAt: new Date(now()) })
        .where(and(isJob, isOpen));
      const current = database.select({ state: jobs.state }).from(jobs).where(isJob);
      const { state } = change;
      const isEnd = state !== undefined && state !== "queued" && state !== "running";
      // The audit entry precedes the update: it requires an open job, and records the detail that the update may replace.
      const [row] =
        by !== undefined && isEnd
          ? (await query(database.batch([auditEnd(database, jobNumber, state, by, now()), update, current])))[2]
          : (await query(database.batch([update, current])))[1];
      return row && JobRow.shape.state.parse(row.state);
    },

    async remove(jobNumber) {
      await query(database.delete(jobs).where(eq(jobs.jobNumber, jobNumber)));
    },

    async countByState() {
      const found = await query(database.select({ state: jobs.state, jobs: count() }).from(jobs).groupBy(jobs.state));
      const byState = new Map(
        CountedState.array()
          .parse(found)
          .map(({ state, jobs }) => [state, jobs]),
      );
      return new Map(JOB_STATES.map((state) => [state, byState.get(state) ?? 0]));
    },
  };
}

/** Returns the statement that audits the end of a command or an emulation, unless the job has ended before. */
function auditEnd(database: Database, jobNumber: string, end: End, by: AuditActor, atMs: number) {
  return database.run(
    sql`insert into ${audit} (at, request_id, actor, action, object, detail)
        select ${atMs}, ${by.requestId}, ${actorText(by)},
          case kind when 'command' then ${endAction("command", end)} else ${endAction("emulation", end)} end,
          case kind when 'command' then 'agent:' || coalesce(target, '') else 'job:' || job_number end,
          json_object(case kind when 'command' then 'command' else 'access_points' end, detail, 'job_number', job_number, 'outcome', ${end})
        from ${jobs}
        where job_number = ${jobNumber} and kind in ('command', 'emulator') and state in ('queued', 'running')`,
  );
}
