import { and, desc, eq, inArray, sql } from "drizzle-orm";
import { type Database, reach } from "../accounts/database.ts";
import { outbox } from "../broker/tables.ts";
import { exceededQuota, hasRoom, NO_QUOTAS, type Quotas, usedUnless } from "../jobs/quotas.ts";
import { jobs } from "../jobs/tables.ts";

/** Commands in libSQL: each is a job, and a message in the outbox. */
export interface CommandStore {
  /** Notes commands, but none for an agent that was sent another one within the pause; the numbers of those that were noted. Throws `QuotaExceeded` if there is no room for all of them. */
  insert(commands: readonly NewCommand[], when: CommandTimes): Promise<Set<string>>;
  /** The last command that an agent was sent. */
  last(apId: string): Promise<{ jobNumber: string; createdMs: number } | undefined>;
}

export interface NewCommand {
  jobNumber: string;
  ownerId: string;
  owner: string;
  apId: string;
  topic: string;
  payload: string;
  detail: string;
}

export interface CommandTimes {
  createdMs: number;
  expiresMs: number;
  pauseMs: number;
}

export function createCommandStore(database: Database, quotas: Quotas = NO_QUOTAS): CommandStore {
  return {
    async insert(commands, { createdMs, expiresMs, pauseMs }) {
      // All in one parameter: a thousand commands cost three statements.
      const given = sql`json_each(${JSON.stringify(commands)})`;
      const field = (name: keyof NewCommand) => sql.raw(`json_extract(value, '$.${name}')`);
      const demand = { ownerId: commands[0]?.ownerId ?? "", nowMs: createdMs, jobs: commands.length };
      const isAnyStored = sql`exists (
        select 1 from ${jobs} where job_number in (select ${field("jobNumber")} from ${given}))`;
      const [, , rows, used] = await reach(
        database.batch([
          database.run(
            sql`insert into ${jobs} (job_number, kind, state, owner_id, owner, target, detail, messages, created_at, updated_at)
                select ${field("jobNumber")}, 'command', 'queued', ${field("ownerId")}, ${field("owner")}, ${field("apId")},
                  ${field("detail")}, 0, ${createdMs}, ${createdMs}
                from ${given}
                where ${hasRoom(demand, quotas)} and not exists (
                  select 1 from ${jobs} as former
                  where former.target = ${field("apId")} and former.kind = 'command' and former.created_at > ${createdMs - pauseMs}
                )`,
          ),
          // Together or not at all: what is promised is published, and nothing else is.
          database.run(
            sql`insert into ${outbox} (job_number, part, topic, payload, created_at, due_at, expires_at, published)
                select ${field("jobNumber")}, 1, ${field("topic")}, ${field("payload")}, ${createdMs}, ${createdMs}, ${expiresMs}, 0
                from ${given}
                where exists (select 1 from ${jobs} as noted where noted.job_number = ${field("jobNumber")})`,
          ),
          database
            .select({ jobNumber: jobs.jobNumber })
            .from(jobs)
            .where(
              inArray(
                jobs.jobNumber,
                commands.map(({ jobNumber }) => jobNumber),
              ),
            ),
          database.all(usedUnless(isAnyStored, demand, quotas)),
        ]),
      );
      const exceeded = rows.length > 0 ? undefined : exceededQuota(demand, quotas, used);
      if (exceeded !== undefined) throw exceeded;
      return new Set(rows.map(({ jobNumber }) => jobNumber));
    },

    async last(apId) {
      const [row] = await reach(
        database
          .select({ jobNumber: jobs.jobNumber, createdAt: jobs.createdAt })
          .from(jobs)
          .where(and(eq(jobs.target, apId), eq(jobs.kind, "command")))
          .orderBy(desc(jobs.createdAt))
          .limit(1),
      );
      return row && { jobNumber: row.jobNumber, createdMs: row.createdAt.getTime() };
    },
  };
}
