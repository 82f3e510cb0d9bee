import { and, asc, eq, gt, inArray, sql } from "drizzle-orm";
import * as z from "zod";
import { Conflict, Duplicate, NotFound, TooLarge } from "../errors.ts";
import type { Page } from "../schemas/primitives.ts";
import { type Author, auditIfChanged } from "./audit.ts";
import { ALL_ROWS, type Database, isUniqueViolation, reach } from "./database.ts";
import { type EnrolmentUse, usedUp } from "./enrolment.ts";
import { agents, enrolmentUses } from "./tables.ts";

const AgentRow = z.object({
  id: z.string(),
  apId: z.string(),
  credentialKind: z.enum(["argon2id", "hmac"]),
  credential: z.string(),
  configuration: z.record(z.string(), z.unknown()),
  onboard: z.boolean(),
  version: z.int(),
});
export type AgentRow = z.output<typeof AgentRow>;

export type NewAgent = Pick<AgentRow, "apId" | "credentialKind" | "credential" | "configuration">;
export type AgentChanges = {
  /** A new argon2id hash. */
  passwordHash?: string | undefined;
  configuration?: Record<string, unknown> | undefined;
};

export interface AgentStore {
  find(apId: string): Promise<AgentRow | undefined>;
  insert(agent: NewAgent, by: Author): Promise<AgentRow>;
  /** As `insert`, and counts a use of the enrolment token; rejects if it is used up. */
  enrol(agent: NewAgent, by: Author, use: EnrolmentUse): Promise<AgentRow>;
  /** A new password ends the agent's tokens; a new configuration does not. */
  update(apId: string, changes: AgentChanges, by: Author): Promise<AgentRow>;
  /** Puts keys into the agent's configuration, each replacing what it held; a configuration that stays the same is not written. */
  mergeConfiguration(apId: string, patch: Record<string, unknown>, by: Author): Promise<void>;
  /** In the order of their names, those after one of them; of `only` those, where given. */
  list(page: Page & { after?: string | undefined }, only?: readonly string[]): Promise<AgentRow[]>;
  /** Which of these names are those of agents. */
  existing(apIds: readonly string[]): Promise<string[]>;
  /** What an overview tells of all agents, in the order of their names. */
  outlines(): Promise<AgentOutline[]>;
  delete(apId: string, by: Author): Promise<void>;
  markOnboard(apId: string): Promise<void>;
}

const Figure = z.number().nullable();
const AgentOutlines = z
  .string()
  .transform((text): unknown => JSON.parse(text))
  .pipe(z.array(z.tuple([z.string(), z.literal([0, 1]), z.string().nullable(), Figure, Figure, Figure])))
  .transform((rows) =>
    rows.map(([apId, onboard, accessPointType, latitude, longitude, interval]) => ({
      ...{ apId, onboard: onboard === 1, accessPointType, latitude, longitude, interval },
    })),
  );
export type AgentOutline = z.output<typeof AgentOutlines>[number];

/** Whatever an agent calls itself, all that look at the network get it; what is longer is no name. */
const MAX_TYPE_LENGTH = 64;

const MAX_MERGES = 5;
/** As much as one call can bring. An agent that brings other keys with every call gets no further. */
const MAX_CONFIGURATION_BYTES = 1024 * 1024;

/** In bytes, and as it is written, which may be longer than what was sent: what no message can hold could be told to nobody. */
function refuseLarge(configuration: string): void {
  const { byteLength } = new TextEncoder().encode(configuration);
  if (byteLength > MAX_CONFIGURATION_BYTES) throw new TooLarge("Configuration");
}

const objectOf = (apId: string): string => `agent:${apId}`;

const newRow = (agent: NewAgent) => {
  refuseLarge(JSON.stringify(agent.configuration));
  return { id: crypto.randomUUID(), createdAt: new Date(), version: Date.now(), ...agent };
};

export function createAgentStore(database: Database): AgentStore {
  const find: AgentStore["find"] = async (apId) => {
    const rows = await reach(database.select().from(agents).where(eq(agents.apId, apId)));
    return rows[0] === undefined ? undefined : AgentRow.parse(rows[0]);
  };

  return {
    find,

    async insert(agent, by) {
      const row = newRow(agent);
      try {
        const [rows] = await reach(
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
      const { id, apId, credentialKind, credential, configuration, version, createdAt } = newRow(agent);
      try {
        // One transaction: a use that is not free inserts no agent, and a name that is taken takes back the use.
        const [, rows] = await reach(
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
                // In the order of the table's columns.
                sql`select ${id}, ${apId}, ${credentialKind}, ${credential}, ${JSON.stringify(configuration)}, 0, ${version},
                  ${createdAt.getTime()} where changes() > 0`,
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
      if (configuration !== undefined) refuseLarge(JSON.stringify(configuration));
      const changed = [passwordHash && "change password", configuration && "configure"].filter(Boolean);
      const [rows] = await reach(
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
          auditIfChanged(database, by, changed.join(" and "), objectOf(apId)),
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
        refuseLarge(text);
        // Only if it is still what was read: of two that merge at once, one sees the other's keys and tries again.
        const unchanged = sql`${agents.configuration} = ${before}`;
        const [rows] = await reach(
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

    async list({ limit, offset, after }, only) {
      const rows = await reach(
        database
          .select()
          .from(agents)
          .where(
            and(
              after === undefined ? undefined : gt(agents.apId, after),
              only === undefined ? undefined : inArray(agents.apId, [...only]),
            ),
          )
          .orderBy(asc(agents.apId))
          .limit(limit ?? ALL_ROWS)
          .offset(offset),
      );
      return z.array(AgentRow).parse(rows);
    },

    async existing(apIds) {
      const names = database
        .select({ apId: agents.apId })
        .from(agents)
        .where(inArray(agents.apId, [...apIds]));
      return (await reach(names)).map(({ apId }) => apId);
    },

    async outlines() {
      // In one text: ten thousand rows of six columns each take the client several times as long to read. Texts stay as JSON in it:
      // unescaped, a half of a surrogate pair is no UTF-8, and one agent's would make all of it unreadable.
      const rows = await reach(
        database.all(sql`
          select json_group_array(json_array(
            ap_id, onboard,
            json(case when json_type(configuration, '$.access_point_type') = 'text'
              and length(configuration -> '$.access_point_type') <= ${MAX_TYPE_LENGTH + '""'.length}
              then configuration -> '$.access_point_type' end),
            configuration -> '$.geolocation.latitude', configuration -> '$.geolocation.longitude',
            case when json_type(configuration, '$.interval') in ('integer', 'real') then configuration ->> '$.interval' end
          )) as outlines
          from (select ap_id, onboard, configuration from ${agents} order by ap_id)`),
      );
      return z.tuple([z.object({ outlines: AgentOutlines })]).parse(rows)[0].outlines;
    },

    async delete(apId, by) {
      const [rows] = await reach(
        database.batch([
          database.delete(agents).where(eq(agents.apId, apId)).returning({ id: agents.id }),
          auditIfChanged(database, by, "delete", objectOf(apId)),
        ]),
      );
      if (rows[0] === undefined) throw new NotFound("Agent");
    },

    async markOnboard(apId) {
      await reach(database.update(agents).set({ onboard: true }).where(eq(agents.apId, apId)));
    },
  };
}
