import { and, eq, sql } from "drizzle-orm";
import * as z from "zod";
import { Conflict, Duplicate, NotFound, TooLarge } from "../../lib/errors.ts";
import type { Labels } from "../../lib/selectors.ts";
import { type Database, isUniqueViolation, query } from "../../storage/libsql.ts";
import { agents, enrolmentTokens, enrolmentUses } from "../account-tables.ts";
import { type AuditActor, auditIf, auditIfChanged } from "../audit.ts";
import { type EnrolmentUse, usedUp } from "../enrolment/enrolment.ts";
import type { OwnedJob, OwnedJobs } from "../owned-jobs.ts";
import { type AgentLists, createAgentLists } from "./agent-lists.ts";
import { labelsOf } from "./labels.ts";

const AgentRow = z
  .object({
    id: z.string(),
    apId: z.string(),
    credentialKind: z.enum(["argon2id", "hmac"]),
    credential: z.string(),
    configuration: z.record(z.string(), z.unknown()),
    onboard: z.boolean(),
    version: z.int(),
    labels: z.record(z.string(), z.string()),
    ownerId: z.string().nullable(),
    owner: z.string().nullable(),
  })
  .transform(({ labels: customLabels, owner, ...row }) => {
    const labels = labelsOf({
      apId: row.apId,
      customLabels,
      accessPointType: row.configuration.access_point_type,
      owner,
    });
    return { ...row, owner, customLabels, labels };
  });
/** An agent. `customLabels` are those that callers have set, `labels` are all. */
export type AgentRow = z.output<typeof AgentRow>;

export type NewAgent = Pick<AgentRow, "apId" | "credentialKind" | "credential" | "configuration"> & {
  /** Labels that callers set. Default: none. */
  labels?: Labels;
};
export type AgentChanges = {
  /** A new argon2id hash. */
  passwordHash?: string | undefined;
  configuration?: Record<string, unknown> | undefined;
};

export interface AgentStore extends AgentLists {
  find(apId: string): Promise<AgentRow | undefined>;
  insert(agent: NewAgent, by: AuditActor): Promise<AgentRow>;
  /** Like `insert`, and counts a use of the enrolment token. Throws `NotAllowed` if the token is used up. */
  enrol(agent: NewAgent, by: AuditActor, use: EnrolmentUse): Promise<AgentRow>;
  /** A new password invalidates the agent's tokens, a new configuration does not. */
  update(apId: string, changes: AgentChanges, by: AuditActor): Promise<AgentRow>;
  /** Replaces keys of the agent's configuration. Writes nothing if the configuration stays the same. */
  mergeConfiguration(apId: string, patch: Record<string, unknown>, by: AuditActor): Promise<void>;
  /** Deletes the agent and ends its jobs. Returns those jobs. */
  delete(apId: string, by: AuditActor, endJobs: OwnedJobs["end"]): Promise<OwnedJob[]>;
  markOnboard(apId: string): Promise<void>;
}

const MAX_MERGES = 5;
/** As large as one request. Without this limit an agent could add other keys with every report. */
const MAX_CONFIGURATION_BYTES = 1024 * 1024;

/**
 * Throws `TooLarge` if a configuration is too long, in bytes of its stored JSON, which may be longer than the request. A longer one would
 * not fit in any message.
 */
function rejectLarge(configuration: string): void {
  const { byteLength } = new TextEncoder().encode(configuration);
  if (byteLength > MAX_CONFIGURATION_BYTES) throw new TooLarge("Configuration");
}

const objectOf = (apId: string): string => `agent:${apId}`;

const newRow = (agent: NewAgent) => {
  rejectLarge(JSON.stringify(agent.configuration));
  return { id: crypto.randomUUID(), createdAt: new Date(), version: Date.now(), labels: {}, ...agent };
};

export function createAgentStore(database: Database): AgentStore {
  const find: AgentStore["find"] = async (apId) => {
    const rows = await query(database.select().from(agents).where(eq(agents.apId, apId)));
    return rows[0] === undefined ? undefined : AgentRow.parse(rows[0]);
  };

  return {
    ...createAgentLists(database),
    find,

    async insert(agent, by) {
      const row = newRow(agent);
      try {
        const [rows] = await query(
          database.batch([
            database.insert(agents).values(row).returning(),
            auditIfChanged(database, by, "create", objectOf(agent.apId)),
          ]),
        );
        return AgentRow.parse(rows[0]);
      } catch (error) {
        throw isUniqueViolation(error) ? new Duplicate("Agent") : error;
      }
    },

    async enrol(agent, by, { tokenHash, maxUses }) {
      const { id, apId, credentialKind, credential, configuration, labels, version, createdAt } = newRow(agent);
      try {
        // One transaction: no agent is inserted if the uses are exhausted or the token was revoked meanwhile, and no use is counted if
        // the name is taken.
        const [, rows] = await query(
          database.batch([
            database
              .insert(enrolmentUses)
              .values({ tokenHash, uses: 1 })
              .onConflictDoUpdate({
                target: enrolmentUses.tokenHash,
                set: { uses: sql`${enrolmentUses.uses} + 1` },
                setWhere: sql`${enrolmentUses.uses} < ${maxUses}`,
              }),
            database
              .insert(agents)
              .select(
                // The values must be in the order of the table's columns.
                sql`select ${id}, ${apId}, ${credentialKind}, ${credential}, ${JSON.stringify(configuration)}, 0, ${version},
                  ${createdAt.getTime()}, ${JSON.stringify(labels)}, null, null
                  where changes() > 0 and not exists (
                    select 1 from ${enrolmentTokens} where token_hash = ${tokenHash} and revoked_at is not null)`,
              )
              .returning(),
            auditIfChanged(database, by, "create", objectOf(apId)),
          ]),
        );
        if (rows[0] === undefined) throw usedUp(maxUses);
        return AgentRow.parse(rows[0]);
      } catch (error) {
        throw isUniqueViolation(error) ? new Duplicate("Agent") : error;
      }
    },

    async update(apId, { passwordHash, configuration }, by) {
      if (configuration !== undefined) rejectLarge(JSON.stringify(configuration));
      const actions = [passwordHash && "change password", configuration && "configure"].filter(Boolean);
      const [rows] = await query(
        database.batch([
          database
            .update(agents)
            .set({
              ...(passwordHash !== undefined && {
                credential: passwordHash,
                credentialKind: "argon2id",
                version: sql`${agents.version} + 1`,
              }),
              ...(configuration !== undefined && { configuration }),
            })
            .where(eq(agents.apId, apId))
            .returning(),
          auditIfChanged(database, by, actions.join(" and "), objectOf(apId)),
        ]),
      );
      if (rows[0] === undefined) throw new NotFound("Agent");
      return AgentRow.parse(rows[0]);
    },

    async mergeConfiguration(apId, patch, by) {
      for (let attempt = 0; attempt < MAX_MERGES; attempt++) {
        const row = await find(apId);
        if (row === undefined) throw new NotFound("Agent");
        const before = JSON.stringify(row.configuration);
        const after = { ...row.configuration, ...patch };
        const text = JSON.stringify(after);
        if (text === before) return;
        rejectLarge(text);
        // Updates only if the configuration is unchanged since the read. Otherwise a concurrent merge won, and the loop retries.
        const unchanged = sql`${agents.configuration} = ${before}`;
        const [rows] = await query(
          database.batch([
            database
              .update(agents)
              .set({ configuration: after })
              .where(and(eq(agents.apId, apId), unchanged))
              .returning({ id: agents.id }),
            auditIfChanged(database, by, "configure", objectOf(apId)),
          ]),
        );
        if (rows[0] !== undefined) return;
      }
      throw new Conflict("The agent's configuration keeps changing");
    },

    async delete(apId, by, endJobs) {
      const deleted = sql`(select id from agents where ap_id = ${apId})`;
      const [, , , ended, , removed] = await query(
        database.batch([
          ...endJobs(deleted),
          // The entry precedes the deletion: its event copies the labels of the agent.
          auditIf(database, sql`exists ${deleted}`, by, "delete", objectOf(apId)),
          database.delete(agents).where(eq(agents.apId, apId)).returning({ id: agents.id }),
        ]),
      );
      if (removed.length === 0) throw new NotFound("Agent");
      return ended;
    },

    async markOnboard(apId) {
      await query(database.update(agents).set({ onboard: true }).where(eq(agents.apId, apId)));
    },
  };
}
