import { notInArray, sql } from "drizzle-orm";
import { agents } from "../accounts/account-tables.ts";
import { ownerLabel } from "../accounts/agents/labels.ts";
import { type AuditActor, auditIfChanged } from "../accounts/audit.ts";
import type { NewOutboxMessage } from "../broker/outbox.ts";
import { outbox } from "../broker/outbox-table.ts";
import { jobs } from "../jobs/job-table.ts";
import { exceededQuota, hasRoom, NO_QUOTAS, type Quotas, usedUnless } from "../jobs/quotas.ts";
import { type Database, query } from "../storage/libsql.ts";
import { emulations, emulatorParts } from "./emulation-tables.ts";

/** Stores a spin-up in one transaction: the emulated agents, their job, and the messages to the emulators. */
export interface SpinupStore {
  /** Throws `QuotaExceeded` if the quota has no room for the spin-up. */
  insert(spinup: NewSpinup, actor: AuditActor): Promise<void>;
}

export interface NewSpinup {
  jobNumber: string;
  ownerId: string;
  owner: string;
  detail: string;
  agents: readonly { apId: string; credential: string; configuration: Record<string, unknown> }[];
  messages: readonly NewOutboxMessage[];
  createdMs: number;
  /** No emulator can claim the job after this time. */
  expiresMs: number;
  /** The latest time at which the emulation can still run. */
  endsMs: number;
}

/** One parameter holds all rows of a statement. This number keeps it below the size that a server accepts. */
const ROWS_PER_STATEMENT = 2_000;

export function createSpinupStore(database: Database, quotas: Quotas = NO_QUOTAS): SpinupStore {
  return {
    async insert(
      { jobNumber, ownerId, owner, detail, agents: newAgents, messages, createdMs, expiresMs, endsMs },
      actor,
    ) {
      const rows = newAgents.map(({ apId, credential, configuration }) => ({
        id: crypto.randomUUID(),
        apId,
        credential,
        configuration: JSON.stringify(configuration),
      }));
      const chunks = Array.from({ length: Math.ceil(rows.length / ROWS_PER_STATEMENT) }, (_, i) =>
        rows.slice(i * ROWS_PER_STATEMENT, (i + 1) * ROWS_PER_STATEMENT),
      );
      const demand = { ownerId, nowMs: createdMs, jobs: 1, emulated: newAgents.length };
      // The first statement checks the quotas. The others insert only if it has inserted a row.
      const isAccepted = sql`exists (select 1 from ${emulations} where job_number = ${jobNumber})`;
      const results = await query(
        database.batch([
          database.run(
            sql`insert into ${emulations} (job_number, owner_id, owner, access_points, created_at, ends_at)
                select ${jobNumber}, ${ownerId}, ${owner}, ${newAgents.length}, ${createdMs}, ${endsMs}
                where ${hasRoom(demand, quotas)}`,
          ),
          database.all(usedUnless(isAccepted, demand, quotas)),
          database.run(
            sql`insert into ${jobs} (job_number, kind, state, owner_id, owner, target, detail, messages, created_at, updated_at)
                select ${jobNumber}, 'emulator', 'queued', ${ownerId}, ${owner}, null, ${detail}, 0, ${createdMs}, ${createdMs}
                where ${isAccepted}`,
          ),
          auditIfChanged(
            database,
            actor,
            "spin up",
            `job:${jobNumber}`,
            JSON.stringify({ access_points: detail, job_number: jobNumber, outcome: "queued" }),
          ),
          // Delete the parts of deleted jobs. This need not happen soon, so the next spin-up does it.
          database
            .delete(emulatorParts)
            .where(notInArray(emulatorParts.jobNumber, database.select({ jobNumber: jobs.jobNumber }).from(jobs))),
          database.run(
            sql`insert into ${emulatorParts} (job_number, part, state, emulator)
                select ${jobNumber}, value, 'queued', null
                from json_each(${JSON.stringify(messages.map(({ part }) => part))}) where ${isAccepted}`,
          ),
          ...chunks.map((chunk) =>
            database.run(
              sql`insert into ${agents} (id, ap_id, credential_kind, credential, configuration, onboard, version, created_at, owner_id, owner)
                  select json_extract(value, '$.id'), json_extract(value, '$.apId'), 'hmac', json_extract(value, '$.credential'),
                    json_extract(value, '$.configuration'), 0, ${createdMs}, ${createdMs}, ${ownerId}, ${ownerLabel(actor.name)}
                  from json_each(${JSON.stringify(chunk)}) where ${isAccepted}`,
            ),
          ),
          ...messages.map(({ part, topic, payload }) =>
            database.run(
              sql`insert into ${outbox} (job_number, part, topic, payload, created_at, due_at, expires_at, published)
                  select ${jobNumber}, ${part}, ${topic}, ${payload}, ${createdMs}, ${createdMs}, ${expiresMs}, 0 where ${isAccepted}`,
            ),
          ),
        ]),
      );
      const exceeded = exceededQuota(demand, quotas, results[1]);
      if (exceeded !== undefined) throw exceeded;
    },
  };
}
