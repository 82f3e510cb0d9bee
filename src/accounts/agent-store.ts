import { and, eq, type SQL, sql } from "drizzle-orm";
import * as z from "zod";
import { Conflict, Duplicate, NotFound, TooLarge } from "../lib/errors.ts";
import { type Database, isUniqueViolation, query } from "../storage/libsql.ts";
import { agents, enrolmentUses } from "./account-tables.ts";
import { type AuditActor, auditIfChanged } from "./audit.ts";
import { type EnrolmentUse, usedUp } from "./enrolment.ts";
import type { OwnedJob, OwnedJobs } from "./owned-jobs.ts";

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

/** What lists tell of an agent. */
const AgentListed = AgentRow.pick({ id: true, apId: true, configuration: true, onboard: true });
export type AgentListed = z.output<typeof AgentListed>;

/** A part of all agents, in the order of their names. */
export interface AgentSlice {
  /** Only those after this name. */
  after?: string | undefined;
  /** How many of those are left out first. */
  offset?: number | undefined;
  limit?: number | undefined;
  /** Of these only. */
  only?: readonly string[] | undefined;
}

export interface AgentPage {
  rows: AgentListed[];
  /** Whether none of the slice follows. */
  isLast: boolean;
}

/** What a command must know of an agent. */
export interface Commandable extends Pick<AgentOutline, "apId" | "accessPointType" | "latitude" | "longitude"> {
  /** Whether it knows the command: if it says which ones it knows, it knows no others. */
  knows: boolean;
}

export interface AgentStore {
  find(apId: string): Promise<AgentRow | undefined>;
  insert(agent: NewAgent, by: AuditActor): Promise<AgentRow>;
  /** As `insert`, and counts a use of the enrolment token; rejects if it is used up. */
  enrol(agent: NewAgent, by: AuditActor, use: EnrolmentUse): Promise<AgentRow>;
  /** A new password ends the agent's tokens; a new configuration does not. */
  update(apId: string, changes: AgentChanges, by: AuditActor): Promise<AgentRow>;
  /** Puts keys into the agent's configuration, each replacing what it held; a configuration that stays the same is not written. */
  mergeConfiguration(apId: string, patch: Record<string, unknown>, by: AuditActor): Promise<void>;
  /** The first of a slice, as many as fit in memory together with what else is there: configurations may be large. */
  page(slice: AgentSlice): Promise<AgentPage>;
  /** All of a slice, page by page. */
  pages(slice: AgentSlice): AsyncGenerator<AgentPage>;
  /** Which of these names are those of agents. */
  existing(apIds: readonly string[]): Promise<string[]>;
  /** What an overview tells of all agents, in the order of their names. */
  outlines(): Promise<AgentOutline[]>;
  /**
   * All agents, or of `only` those, in the order of their names, with what a command must know of them.
   * @param names under which an agent may know the command
   */
  commandables(names: readonly string[], only?: readonly string[]): Promise<Commandable[]>;
  /** Returns the jobs that end with the account. */
  delete(apId: string, by: AuditActor, endJobs: OwnedJobs["end"]): Promise<OwnedJob[]>;
  markOnboard(apId: string): Promise<void>;
}

const Figure = z.number().nullable();
const Flag = z.literal([0, 1]).transform((flag) => flag === 1);
const AgentOutlines = z
  .string()
  .transform((text): unknown => JSON.parse(text))
  .pipe(z.array(z.tuple([z.string(), Flag, z.string().nullable(), Figure, Figure, Figure, Flag])))
  .transform((rows) =>
    rows.map(([apId, onboard, accessPointType, latitude, longitude, interval, knows]) => ({
      ...{ apId, onboard, accessPointType, latitude, longitude, interval, knows },
    })),
  );
export type AgentOutline = Omit<z.output<typeof AgentOutlines>[number], "knows">;

/** Whatever an agent calls itself, all that look at the network get it; what is longer is no name. */
const MAX_TYPE_LENGTH = 64;

/** Of a page of whole configurations; one that is larger by itself is a page by itself. */
const PAGE_ROWS = 500;
const PAGE_BYTES = 2 * 1024 * 1024;
/** An outline has a few hundred bytes at the most. */
const PAGE_OUTLINES = 5_000;

const MAX_MERGES = 5;
/** As much as one call can bring. An agent that brings other keys with every call gets no further. */
const MAX_CONFIGURATION_BYTES = 1024 * 1024;

/** In bytes, and as it is written, which may be longer than what was sent: what no message can hold could be told to nobody. */
function refuseLarge(configuration: string): void {
  const { byteLength } = new TextEncoder().encode(configuration);
  if (byteLength > MAX_CONFIGURATION_BYTES) throw new TooLarge("Configuration");
}

const PageRows = z.array(
  z.object({
    id: z.string(),
    apId: z.string(),
    configuration: z
      .string()
      .transform((text): unknown => JSON.parse(text))
      .pipe(AgentListed.shape.configuration),
    onboard: Flag,
    /** How many rows there were, with those that did not fit. */
    found: z.int(),
  }),
);

const isAfter = (after: string | undefined): SQL => (after === undefined ? sql`true` : sql`ap_id > ${after}`);
/** In one parameter, however many: SQLite takes 32,766 of them. */
const isOneOf = (only: readonly string[] | undefined): SQL =>
  only === undefined ? sql`true` : sql`ap_id in (select value from json_each(${JSON.stringify(only)}))`;
/** Whether the agent's `commands`, if it lists them, have one of these names. */
const knows = (names: readonly string[]): SQL =>
  sql`(json_type(configuration, '$.commands') is not 'array' or exists (
    select 1 from json_each(configuration, '$.commands') as known
    where known.type = 'text' and known.value in (select value from json_each(${JSON.stringify(names)}))))`;

const objectOf = (apId: string): string => `agent:${apId}`;

const newRow = (agent: NewAgent) => {
  refuseLarge(JSON.stringify(agent.configuration));
  return { id: crypto.randomUUID(), createdAt: new Date(), version: Date.now(), ...agent };
};

export function createAgentStore(database: Database): AgentStore {
  const find: AgentStore["find"] = async (apId) => {
    const rows = await query(database.select().from(agents).where(eq(agents.apId, apId)));
    return rows[0] === undefined ? undefined : AgentRow.parse(rows[0]);
  };

  const page: AgentStore["page"] = async ({ after, offset = 0, limit, only }) => {
    const maxRows = Math.min(limit ?? PAGE_ROWS, PAGE_ROWS);
    // How many rows fit is found out by their lengths, before a single configuration is on its way.
    const rows = await query(
      database.all(sql`
        with slice as materialized (
          select name, row_number() over (order by name) as place, sum(length) over (order by name rows unbounded preceding) as bytes
          from (select ap_id as name, length(cast(configuration as blob)) as length from ${agents}
            where ${isAfter(after)} and ${isOneOf(only)} order by ap_id limit ${maxRows} offset ${offset})
        )
        select id, ap_id as "apId", configuration, onboard, (select count(*) from slice) as found
        from slice join ${agents} on ap_id = name
        where place = 1 or bytes <= ${PAGE_BYTES}
        order by ap_id`),
    );
    const found = PageRows.parse(rows);
    const hasFullScope = found.length === (found[0]?.found ?? 0);
    const isLast = hasFullScope && (found.length < maxRows || found.length === limit);
    return { rows: found.map(({ found: _, ...row }) => row), isLast };
  };

  /** All outlines, in pages: what is asked for in one text is in memory several times. */
  const outlines = async (names: readonly string[], only?: readonly string[]) => {
    const all: z.output<typeof AgentOutlines> = [];
    for (let after: string | undefined; ; after = all.at(-1)?.apId) {
      const its = await outlinesAfter(after, names, only);
      for (const outline of its) all.push(outline);
      if (its.length < PAGE_OUTLINES) return all;
    }
  };
  const outlinesAfter = async (after: string | undefined, names: readonly string[], only?: readonly string[]) => {
    // In one text: ten thousand rows of six columns each take the client several times as long to read. Texts stay as JSON in it:
    // unescaped, a half of a surrogate pair is no UTF-8, and one agent's would make all of it unreadable.
    const rows = await query(
      database.all(sql`
        select json_group_array(json_array(
          ap_id, onboard,
          json(case when json_type(configuration, '$.access_point_type') = 'text'
            and length(configuration -> '$.access_point_type') <= ${MAX_TYPE_LENGTH + '""'.length}
            then configuration -> '$.access_point_type' end),
          configuration -> '$.geolocation.latitude', configuration -> '$.geolocation.longitude',
          case when json_type(configuration, '$.interval') in ('integer', 'real') then configuration ->> '$.interval' end,
          ${knows(names)}
        )) as outlines
        from (select ap_id, onboard, configuration from ${agents} where ${isAfter(after)} and ${isOneOf(only)}
          order by ap_id limit ${PAGE_OUTLINES})`),
    );
    return z.tuple([z.object({ outlines: AgentOutlines })]).parse(rows)[0].outlines;
  };

  return {
    find,
    page,

    async *pages({ after, offset, limit, only }) {
      for (let slice: AgentSlice = { after, offset, limit, only }; ; ) {
        const found = await page(slice);
        yield found;
        if (found.isLast) return;
        const left = slice.limit === undefined ? undefined : slice.limit - found.rows.length;
        slice = { after: found.rows.at(-1)?.apId, limit: left, only };
      }
    },

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
      const { id, apId, credentialKind, credential, configuration, version, createdAt } = newRow(agent);
      try {
        // One transaction: a use that is not free inserts no agent, and a name that is taken takes back the use.
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

    async existing(apIds) {
      const names = database.select({ apId: agents.apId }).from(agents).where(isOneOf(apIds));
      return (await query(names)).map(({ apId }) => apId);
    },

    async outlines() {
      return await outlines([]);
    },

    async commandables(names, only) {
      return await outlines(names, only);
    },

    async delete(apId, by, endJobs) {
      const deleted = sql`(select id from agents where ap_id = ${apId})`;
      const [, , ended, rows] = await query(
        database.batch([
          ...endJobs(deleted),
          database.delete(agents).where(eq(agents.apId, apId)).returning({ id: agents.id }),
          auditIfChanged(database, by, "delete", objectOf(apId)),
        ]),
      );
      if (rows[0] === undefined) throw new NotFound("Agent");
      return ended;
    },

    async markOnboard(apId) {
      await query(database.update(agents).set({ onboard: true }).where(eq(agents.apId, apId)));
    },
  };
}
