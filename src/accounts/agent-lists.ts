import { type SQL, sql } from "drizzle-orm";
import * as z from "zod";
import type { ScopedAgent } from "../auth/agent-scope.ts";
import { type Database, query } from "../storage/libsql.ts";
import { agents } from "./account-tables.ts";
import { type AgentFilter, isChosen } from "./agent-conditions.ts";
import { labelsOf } from "./labels.ts";

/** An agent in a list. */
export interface AgentListed extends ScopedAgent {
  id: string;
  configuration: Record<string, unknown>;
  onboard: boolean;
}

/** Selects agents, ordered by name. */
export interface AgentSlice {
  /** Only agents after this name. */
  after?: string | undefined;
  /** Number of agents to skip. */
  offset?: number | undefined;
  limit?: number | undefined;
  filter?: AgentFilter | undefined;
}

export interface AgentPage {
  rows: AgentListed[];
  /** Whether this is the last page of the slice. */
  isLast: boolean;
}

/** An agent as a possible target of a command. */
export interface CommandTarget extends Pick<AgentOutline, "apId" | "accessPointType" | "latitude" | "longitude"> {
  /** Whether the agent supports the command. True if its configuration does not list commands. */
  supportsCommand: boolean;
}

/** Queries over many agents. */
export interface AgentLists {
  /** Returns the first page of a slice. Limits the total size of its configurations, which may be large. */
  page(slice: AgentSlice): Promise<AgentPage>;
  /** Yields all pages of a slice. */
  pages(slice: AgentSlice): AsyncGenerator<AgentPage>;
  /** Returns the names that belong to existing agents. */
  existing(apIds: readonly string[]): Promise<string[]>;
  /** Returns a summary of every agent, ordered by name. */
  outlines(): Promise<AgentOutline[]>;
  /**
   * Returns the agents of a filter as targets of a command, ordered by name.
   *
   * @param names the names by which an agent may list the command in its configuration
   */
  commandTargets(names: readonly string[], filter: AgentFilter): Promise<CommandTarget[]>;
  /** Returns the names of the agents of a filter, in order. */
  names(filter: AgentFilter): Promise<string[]>;
}

const NullableNumber = z.number().nullable();
const Flag = z.literal([0, 1]).transform((flag) => flag === 1);
const AgentOutlines = z
  .string()
  .transform((text): unknown => JSON.parse(text))
  .pipe(
    z.array(
      z.tuple([
        z.string(),
        Flag,
        z.string().nullable(),
        NullableNumber,
        NullableNumber,
        NullableNumber,
        Flag,
        z.string(),
        z.string().nullable(),
        z.string().nullable(),
      ]),
    ),
  )
  .transform((rows) =>
    rows.map(
      ([
        apId,
        onboard,
        accessPointType,
        latitude,
        longitude,
        interval,
        supportsCommand,
        labelsText,
        owner,
        ownerId,
      ]) => ({
        apId,
        onboard,
        accessPointType,
        latitude,
        longitude,
        interval,
        supportsCommand,
        /** The labels that callers have set, as JSON: most readers do not need them. */
        labelsText,
        owner,
        ownerId,
      }),
    ),
  );
export type AgentOutline = Omit<z.output<typeof AgentOutlines>[number], "supportsCommand">;

/** Returns the agent of an outline with its labels. */
export function withLabels({ apId, accessPointType, labelsText, owner, ownerId }: AgentOutline): ScopedAgent {
  const customLabels = labelsText === NO_LABELS ? {} : CustomLabels.parse(JSON.parse(labelsText));
  return { apId, ownerId, labels: labelsOf({ apId, customLabels, accessPointType, owner }) };
}

const NO_LABELS = "{}";
const CustomLabels = z.record(z.string(), z.string());

/** Longer types are not valid names. The overview omits them, because it sends every agent's type to every reader. */
const MAX_TYPE_LENGTH = 64;

/** Limits of a page with configurations. A configuration above the limit is on a page of its own. */
const PAGE_ROWS = 500;
const PAGE_BYTES = 2 * 1024 * 1024;
/** An outline has at most a few hundred bytes. */
const PAGE_OUTLINES = 5_000;

const PageRows = z.array(
  z.object({
    id: z.string(),
    apId: z.string(),
    configuration: z
      .string()
      .transform((text): unknown => JSON.parse(text))
      .pipe(z.record(z.string(), z.unknown())),
    onboard: Flag,
    labels: z
      .string()
      .transform((text): unknown => JSON.parse(text))
      .pipe(CustomLabels),
    owner: z.string().nullable(),
    ownerId: z.string().nullable(),
    /** Number of rows found, including those that did not fit on the page. */
    found: z.int(),
  }),
);

const toListed = ({ id, apId, configuration, onboard, labels, owner, ownerId }: z.output<typeof PageRows>[number]) => ({
  id,
  apId,
  configuration,
  onboard,
  ownerId,
  labels: labelsOf({ apId, customLabels: labels, accessPointType: configuration.access_point_type, owner }),
});

const isAfter = (after: string | undefined): SQL => (after === undefined ? sql`true` : sql`ap_id > ${after}`);
/** Whether the agent's configuration lists one of these names in `commands`, or has no such list. */
const supportsOneOf = (names: readonly string[]): SQL =>
  sql`(json_type(configuration, '$.commands') is not 'array' or exists (
    select 1 from json_each(configuration, '$.commands') as command
    where command.type = 'text' and command.value in (select value from json_each(${JSON.stringify(names)}))))`;

export function createAgentLists(database: Database): AgentLists {
  const page: AgentLists["page"] = async ({ after, offset = 0, limit, filter = {} }) => {
    const maxRows = Math.min(limit ?? PAGE_ROWS, PAGE_ROWS);
    // The database determines how many rows fit from their lengths, before it sends any configuration.
    const rows = await query(
      database.all(sql`
        with slice as materialized (
          select name, row_number() over (order by name) as place, sum(length) over (order by name rows unbounded preceding) as bytes
          from (select ap_id as name, length(cast(configuration as blob)) as length from ${agents}
            where ${isAfter(after)} and ${isChosen(filter)} order by ap_id limit ${maxRows} offset ${offset})
        )
        select id, ap_id as "apId", configuration, onboard, labels, owner, owner_id as "ownerId", (select count(*) from slice) as found
        from slice join ${agents} on ap_id = name
        where place = 1 or bytes <= ${PAGE_BYTES}
        order by ap_id`),
    );
    const found = PageRows.parse(rows);
    const allFit = found.length === (found[0]?.found ?? 0);
    const isLast = allFit && (found.length < maxRows || found.length === limit);
    return { rows: found.map(toListed), isLast };
  };

  /** Reads the outlines in pages: the JSON text of each page is in memory several times. */
  const outlines = async (names: readonly string[], filter: AgentFilter) => {
    const all: z.output<typeof AgentOutlines> = [];
    for (let after: string | undefined; ; after = all.at(-1)?.apId) {
      const next = await outlinesAfter(after, names, filter);
      for (const outline of next) all.push(outline);
      if (next.length < PAGE_OUTLINES) return all;
    }
  };
  const outlinesAfter = async (after: string | undefined, names: readonly string[], filter: AgentFilter) => {
    // Returns all rows as one text: the client takes several times as long to read ten thousand rows. Strings stay JSON-escaped:
    // an unescaped lone surrogate is not valid UTF-8, and one agent's would make the whole text unreadable.
    const rows = await query(
      database.all(sql`
        select json_group_array(json_array(
          ap_id, onboard,
          json(case when json_type(configuration, '$.access_point_type') = 'text'
            and length(configuration -> '$.access_point_type') <= ${MAX_TYPE_LENGTH + '""'.length}
            then configuration -> '$.access_point_type' end),
          configuration -> '$.geolocation.latitude', configuration -> '$.geolocation.longitude',
          case when json_type(configuration, '$.interval') in ('integer', 'real') then configuration ->> '$.interval' end,
          ${supportsOneOf(names)}, labels, owner, owner_id
        )) as outlines
        from (select ap_id, onboard, configuration, labels, owner, owner_id from ${agents}
          where ${isAfter(after)} and ${isChosen(filter)}
          order by ap_id limit ${PAGE_OUTLINES})`),
    );
    return z.tuple([z.object({ outlines: AgentOutlines })]).parse(rows)[0].outlines;
  };

  const names: AgentLists["names"] = async (filter) => {
    const found = database.select({ apId: agents.apId }).from(agents).where(isChosen(filter)).orderBy(agents.apId);
    return (await query(found)).map(({ apId }) => apId);
  };

  return {
    page,

    async *pages({ after, offset, limit, filter }) {
      for (let slice: AgentSlice = { after, offset, limit, filter }; ; ) {
        const found = await page(slice);
        yield found;
        if (found.isLast) return;
        const left = slice.limit === undefined ? undefined : slice.limit - found.rows.length;
        slice = { after: found.rows.at(-1)?.apId, limit: left, filter };
      }
    },

    names,

    existing: (apIds) => names({ apIds }),

    async outlines() {
      return await outlines([], {});
    },

    commandTargets: outlines,
  };
}
