import { and, desc, eq, sql } from "drizzle-orm";
import { audit } from "../accounts/account-tables.ts";
import { type AuditActor, actorText, SEND_COMMAND } from "../accounts/audit.ts";
import { outbox } from "../broker/outbox-table.ts";
import { jobs } from "../jobs/job-table.ts";
import { exceededQuota, hasRoom, NO_QUOTAS, type Quotas, usedUnless } from "../jobs/quotas.ts";
import { type Database, query } from "../storage/libsql.ts";

/** Stores commands in libSQL. Each command is a job and a message in the outbox. */
export interface CommandStore {
  /**
   * Inserts commands, writes them to the audit trail, and returns the job numbers of the inserted ones. Skips an agent that was sent
   * another command within the minimum interval; for an administrator, only commands of administrators count. Throws `QuotaExceeded` if
   * the quota has no room for all of them.
   */
  insert(commands: readonly NewCommand[], times: CommandTimes, actor: AuditActor): Promise<Set<string>>;
  /** Returns the last command to an agent that can block a new command of this actor. */
  last(apId: string, actor: AuditActor): Promise<{ jobNumber: string; createdMs: number } | undefined>;
  /** Writes a refusal to the audit trail. */
  recordRefusal(object: string, detail: Record<string, unknown>, actor: AuditActor): Promise<void>;
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
  /** Minimum time between two commands to one agent. */
  minIntervalMs: number;
}

const isAdmin = ({ kind }: AuditActor): boolean => kind === "admin";

export function createCommandStore(database: Database, quotas: Quotas = NO_QUOTAS): CommandStore {
  return {
    async insert(commands, { createdMs, expiresMs, minIntervalMs }, actor) {
      // One parameter holds all commands, so that a thousand commands need only a few statements.
      const given = sql`json_each(${JSON.stringify(commands)})`;
      const field = (name: keyof NewCommand) => sql.raw(`json_extract(value, '$.${name}')`);
      const jobNumbers = JSON.stringify(commands.map(({ jobNumber }) => jobNumber));
      const isInserted = sql`job_number in (select value from json_each(${jobNumbers}))`;
      const demand = { ownerId: commands[0]?.ownerId ?? "", nowMs: createdMs, jobs: commands.length };
      const [, , , rows, used] = await query(
        database.batch([
          database.run(
            sql`insert into ${jobs} (job_number, kind, state, owner_id, owner, by_admin, target, detail, messages, created_at, updated_at)
                select ${field("jobNumber")}, 'command', 'queued', ${field("ownerId")}, ${field("owner")}, ${isAdmin(actor) ? 1 : 0},
                  ${field("apId")}, ${field("detail")}, 0, ${createdMs}, ${createdMs}
                from ${given}
                where ${hasRoom(demand, quotas)} and not exists (
                  select 1 from ${jobs} as previous
                  where previous.target = ${field("apId")} and previous.kind = 'command' and previous.created_at > ${createdMs - minIntervalMs}
                    and (previous.by_admin or not ${isAdmin(actor) ? 1 : 0})
                )`,
          ),
          // In the same transaction as the jobs: a message is published if and only if its job exists.
          database.run(
            sql`insert into ${outbox} (job_number, part, topic, payload, created_at, due_at, expires_at, published)
                select ${field("jobNumber")}, 1, ${field("topic")}, ${field("payload")}, ${createdMs}, ${createdMs}, ${expiresMs}, 0
                from ${given}
                where exists (select 1 from ${jobs} as inserted where inserted.job_number = ${field("jobNumber")})`,
          ),
          database.run(
            sql`insert into ${audit} (at, request_id, actor, action, object, detail)
                select ${createdMs}, ${actor.requestId}, ${actorText(actor)}, ${SEND_COMMAND}, 'agent:' || target,
                  json_object('command', detail, 'job_number', job_number, 'outcome', 'queued')
                from ${jobs} where ${isInserted}`,
          ),
          database.select({ jobNumber: jobs.jobNumber }).from(jobs).where(isInserted),
          database.all(usedUnless(sql`exists (select 1 from ${jobs} where ${isInserted})`, demand, quotas)),
        ]),
      );
      const exceeded = rows.length > 0 ? undefined : exceededQuota(demand, quotas, used);
      if (exceeded !== undefined) throw exceeded;
      return new Set(rows.map(({ jobNumber }) => jobNumber));
    },

    async last(apId, actor) {
      const [row] = await query(
        database
          .select({ jobNumber: jobs.jobNumber, createdAt: jobs.createdAt })
          .from(jobs)
          .where(
            and(eq(jobs.target, apId), eq(jobs.kind, "command"), isAdmin(actor) ? eq(jobs.byAdmin, true) : undefined),
          )
          .orderBy(desc(jobs.createdAt))
          .limit(1),
      );
      return row && { jobNumber: row.jobNumber, createdMs: row.createdAt.getTime() };
    },

    async recordRefusal(object, detail, actor) {
      const { requestId } = actor;
      const entry = { at: new Date(), requestId, actor: actorText(actor), action: SEND_COMMAND, object, detail };
      await query(database.insert(audit).values(entry));
    },
  };
}
