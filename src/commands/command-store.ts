import { and, desc, eq, sql } from "drizzle-orm";
import { audit } from "../accounts/account-tables.ts";
import { type AuditActor, actorText, SEND_COMMAND } from "../accounts/audit.ts";
import { outbox } from "../broker/outbox-table.ts";
import { jobs } from "../jobs/job-table.ts";
import { exceededQuota, hasRoom, NO_QUOTAS, type Quotas, usedUnless } from "../jobs/quotas.ts";
import { type Database, query } from "../storage/libsql.ts";

/** Commands in libSQL: each is a job, and a message in the outbox. */
export interface CommandStore {
  /**
   * Notes commands, also in the audit trail, and returns the numbers of those that were noted. A command to an agent that was sent
   * another one within the pause is not; an administrator's yields to administrators' only. Throws
   * `QuotaExceeded` if there is no room for all of them.
   */
  insert(commands: readonly NewCommand[], when: CommandTimes, by: AuditActor): Promise<Set<string>>;
  /** Returns the last command that an agent was sent and that another of this author yields to. */
  last(apId: string, by: AuditActor): Promise<{ jobNumber: string; createdMs: number } | undefined>;
  /** Writes a refusal into the audit trail. */
  noteRefusal(object: string, detail: Record<string, unknown>, by: AuditActor): Promise<void>;
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

const isAdmin = ({ kind }: AuditActor): boolean => kind === "admin";

export function createCommandStore(database: Database, quotas: Quotas = NO_QUOTAS): CommandStore {
  return {
    async insert(commands, { createdMs, expiresMs, pauseMs }, by) {
      // All in one parameter: a thousand commands cost four statements.
      const given = sql`json_each(${JSON.stringify(commands)})`;
      const field = (name: keyof NewCommand) => sql.raw(`json_extract(value, '$.${name}')`);
      const numbers = JSON.stringify(commands.map(({ jobNumber }) => jobNumber));
      const isNoted = sql`job_number in (select value from json_each(${numbers}))`;
      const demand = { ownerId: commands[0]?.ownerId ?? "", nowMs: createdMs, jobs: commands.length };
      const [, , , rows, used] = await query(
        database.batch([
          database.run(
            sql`insert into ${jobs} (job_number, kind, state, owner_id, owner, by_admin, target, detail, messages, created_at, updated_at)
                select ${field("jobNumber")}, 'command', 'queued', ${field("ownerId")}, ${field("owner")}, ${isAdmin(by) ? 1 : 0},
                  ${field("apId")}, ${field("detail")}, 0, ${createdMs}, ${createdMs}
                from ${given}
                where ${hasRoom(demand, quotas)} and not exists (
                  select 1 from ${jobs} as former
                  where former.target = ${field("apId")} and former.kind = 'command' and former.created_at > ${createdMs - pauseMs}
                    and (former.by_admin or not ${isAdmin(by) ? 1 : 0})
                )`,
          ),
          // Together or not at all: what is promised is published, and nothing else is.
          database.run(
            sql`insert into ${outbox} (job_number, part, topic, payload, created_at, due_at, expires_at, published)
                select ${field("jobNumber")}, 1, ${field("topic")}, ${field("payload")}, ${createdMs}, ${createdMs}, ${expiresMs}, 0
                from ${given}
                where exists (select 1 from ${jobs} as noted where noted.job_number = ${field("jobNumber")})`,
          ),
          database.run(
            sql`insert into ${audit} (at, request_id, actor, action, object, detail)
                select ${createdMs}, ${by.requestId}, ${actorText(by)}, ${SEND_COMMAND}, 'agent:' || target,
                  json_object('command', detail, 'job_number', job_number, 'outcome', 'queued')
                from ${jobs} where ${isNoted}`,
          ),
          database.select({ jobNumber: jobs.jobNumber }).from(jobs).where(isNoted),
          database.all(usedUnless(sql`exists (select 1 from ${jobs} where ${isNoted})`, demand, quotas)),
        ]),
      );
      const exceeded = rows.length > 0 ? undefined : exceededQuota(demand, quotas, used);
      if (exceeded !== undefined) throw exceeded;
      return new Set(rows.map(({ jobNumber }) => jobNumber));
    },

    async last(apId, by) {
      const [row] = await query(
        database
          .select({ jobNumber: jobs.jobNumber, createdAt: jobs.createdAt })
          .from(jobs)
          .where(and(eq(jobs.target, apId), eq(jobs.kind, "command"), isAdmin(by) ? eq(jobs.byAdmin, true) : undefined))
          .orderBy(desc(jobs.createdAt))
          .limit(1),
      );
      return row && { jobNumber: row.jobNumber, createdMs: row.createdAt.getTime() };
    },

    async noteRefusal(object, detail, by) {
      const { requestId } = by;
      const entry = { at: new Date(), requestId, actor: actorText(by), action: SEND_COMMAND, object, detail };
      await query(database.insert(audit).values(entry));
    },
  };
}
