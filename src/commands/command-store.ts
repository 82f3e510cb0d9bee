import { and, desc, eq, sql } from "drizzle-orm";
import * as z from "zod";
import { type Database, reach } from "../accounts/database.ts";
import { outbox } from "../broker/tables.ts";
import { jobs } from "../jobs/tables.ts";

/** Commands in libSQL: each is a job, and a message in the outbox. */
export interface CommandStore {
  /** Notes a command, unless the agent was sent another one a short while ago; the one that counts. */
  insert(command: NewCommand, pauseMs: number): Promise<{ jobNumber: string; createdMs: number }>;
}

export interface NewCommand {
  jobNumber: string;
  ownerId: string;
  owner: string;
  apId: string;
  topic: string;
  payload: string;
  detail: string;
  createdMs: number;
  expiresMs: number;
}

const Winner = z.tuple([z.object({ jobNumber: z.string(), createdAt: z.date() })]);

export function createCommandStore(database: Database): CommandStore {
  return {
    async insert({ jobNumber, ownerId, owner, apId, topic, payload, detail, createdMs, expiresMs }, pauseMs) {
      const [, , rows] = await reach(
        database.batch([
          database.run(
            sql`insert into ${jobs} (job_number, kind, state, owner_id, owner, target, detail, messages, created_at, updated_at)
                select ${jobNumber}, 'command', 'queued', ${ownerId}, ${owner}, ${apId}, ${detail}, 0, ${createdMs}, ${createdMs}
                where not exists (
                  select 1 from ${jobs} where target = ${apId} and kind = 'command' and created_at > ${createdMs - pauseMs}
                )`,
          ),
          // Together or not at all: what is promised is published, and nothing else is.
          database.run(
            sql`insert into ${outbox} (job_number, part, topic, payload, created_at, due_at, expires_at, published)
                select ${jobNumber}, 1, ${topic}, ${payload}, ${createdMs}, ${createdMs}, ${expiresMs}, 0 where changes() > 0`,
          ),
          database
            .select({ jobNumber: jobs.jobNumber, createdAt: jobs.createdAt })
            .from(jobs)
            .where(and(eq(jobs.target, apId), eq(jobs.kind, "command")))
            .orderBy(desc(jobs.createdAt))
            .limit(1),
        ]),
      );
      const [winner] = Winner.parse(rows);
      return { jobNumber: winner.jobNumber, createdMs: winner.createdAt.getTime() };
    },
  };
}
