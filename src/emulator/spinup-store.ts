import { and, eq, gte, like, lt, notInArray, sql } from "drizzle-orm";
import { type Author, auditIfChanged } from "../accounts/audit.ts";
import { type Database, reach } from "../accounts/database.ts";
import { agents } from "../accounts/tables.ts";
import { type NewOutboxMessage, outboxInsert } from "../broker/outbox.ts";
import { emulatorParts } from "../jobs/parts-table.ts";
import { jobs } from "../jobs/tables.ts";
import { BEYOND_EMULATED, EMULATED_PREFIX } from "./names.ts";

/** Emulated agents, their job and the messages to those who run them, stored together or not at all. */
export interface SpinupStore {
  insert(spinup: NewSpinup, by: Author): Promise<void>;
  /** Removes the agents of a job. */
  removeAgents(jobNumber: string, by: Author): Promise<number>;
}

export interface NewSpinup {
  jobNumber: string;
  ownerId: string;
  owner: string;
  detail: string;
  agents: readonly { apId: string; credential: string; configuration: Record<string, unknown> }[];
  messages: readonly NewOutboxMessage[];
  createdMs: number;
  expiresMs: number;
}

/** One parameter holds the rows of a statement; this many keep it within what a server takes at once. */
const ROWS_PER_STATEMENT = 2_000;

export function createSpinupStore(database: Database): SpinupStore {
  return {
    async insert({ jobNumber, ownerId, owner, detail, agents: its, messages, createdMs, expiresMs }, by) {
      const at = new Date(createdMs);
      const rows = its.map(({ apId, credential, configuration }) => ({
        id: crypto.randomUUID(),
        apId,
        credential,
        configuration: JSON.stringify(configuration),
      }));
      const job = {
        ...{ jobNumber, ownerId, owner, detail },
        kind: "emulator" as const,
        state: "queued" as const,
        target: null,
        messages: 0,
        createdAt: at,
        updatedAt: at,
      };
      const chunks = Array.from({ length: Math.ceil(rows.length / ROWS_PER_STATEMENT) }, (_, i) =>
        rows.slice(i * ROWS_PER_STATEMENT, (i + 1) * ROWS_PER_STATEMENT),
      );
      await reach(
        database.batch([
          database.insert(jobs).values(job),
          auditIfChanged(
            database,
            by,
            "spin up",
            `job:${jobNumber}`,
            JSON.stringify({ access_points: detail, job_number: jobNumber, outcome: "queued" }),
          ),
          // Parts go with their jobs, sooner or later.
          database
            .delete(emulatorParts)
            .where(notInArray(emulatorParts.jobNumber, database.select({ jobNumber: jobs.jobNumber }).from(jobs))),
          database
            .insert(emulatorParts)
            .values(messages.map(({ part }) => ({ jobNumber, part, state: "queued" as const, emulator: null }))),
          ...chunks.map((chunk) =>
            database.run(
              sql`insert into ${agents} (id, ap_id, credential_kind, credential, configuration, onboard, version, created_at)
                  select json_extract(value, '$.id'), json_extract(value, '$.apId'), 'hmac', json_extract(value, '$.credential'),
                    json_extract(value, '$.configuration'), 0, ${createdMs}, ${createdMs}
                  from json_each(${JSON.stringify(chunk)})`,
            ),
          ),
          ...messages.map((message) => outboxInsert(database, message, createdMs, expiresMs)),
        ]),
      );
    },

    async removeAgents(jobNumber, by) {
      const isOfJob = and(
        // By the index on ap_id first; several jobs may share these eight characters.
        gte(agents.apId, EMULATED_PREFIX),
        lt(agents.apId, BEYOND_EMULATED),
        like(agents.apId, `${EMULATED_PREFIX}%-${jobNumber.slice(0, 8)}-%`),
        eq(sql`json_extract(${agents.configuration}, '$.job_number')`, jobNumber),
      );
      const [removed] = await reach(
        database.batch([
          database.delete(agents).where(isOfJob).returning({ id: agents.id }),
          auditIfChanged(
            database,
            by,
            "remove emulated agents",
            `job:${jobNumber}`,
            // The number of rows that the deletion before it has changed.
            sql`json_object('access_points', changes(), 'job_number', ${jobNumber}, 'outcome', 'removed')`,
          ),
        ]),
      );
      return removed.length;
    },
  };
}
