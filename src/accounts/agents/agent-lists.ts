import { type SQL, sql } from "drizzle-orm";
import * as z from "zod";
import type { ScopedAgent } from "../../auth/agent-scope.ts";
import type { Labels } from "../../lib/selectors.ts";
import { ALL_ROWS, type Database, query } from "../../storage/libsql.ts";
import { agents } from "../account-tables.ts";
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
  /** Returns all agents with their labels, ordered by name. */
  labelled(): Promise<ScopedAgent[]>;
  /** Like `labelled`, with the report intervals, for the agents of a filter. */
  watched(filter: AgentFilter): Promise<WatchedAgent[]>;
}

/** An agent as the evaluation of its reports needs it. */
export interface WatchedAgent extends ScopedAgent {
  /** `interval` of its configuration, in seconds. Null if it is not a number. */
  interval: number | null;
}

const Flag = z.literal([0, 1]).transform((flag) => flag === 1);
const json = z.string().transform((text): unknown => JSON.parse(text));
/** An object that the service has stored. Its members were validated then, and validating ten thousand again takes long. */
const storedObject = <T extends object>() =>
  json.pipe(z.custom<T>((value) => typeof value === "object" && value !== null));

/** Rows of a query of this module, as JSON. Their values were validated when they were stored. */
const storedRows = <Row extends readonly unknown[]>() => json.pipe(z.custom<Row[]>(Array.isArray));

type Position = [latitude: number | null, longitude: number | null];
const AgentOutlines = storedRows<
  [apId: string, onboard: 0 | 1, type: string | null, ...Position, interval: number | null, site: string | null]
>().transform((rows) =>
  rows.map(([apId, onboard, accessPointType, latitude, longitude, interval, site]) => ({
    apId,
    onboard: onboard === 1,
    accessPointType,
    latitude,
    longitude,
    interval,
    site,
  })),
);
export type AgentOutline = z.output<typeof AgentOutlines>[number];

const CommandTargets = storedRows<[apId: string, type: string | null, ...Position, supportsCommand: 0 | 1]>().transform(
  (rows) =>
    rows.map(
      ([apId, accessPointType, latitude, longitude, supportsCommand]): CommandTarget => ({
        apId,
        accessPointType,
        latitude,
        longitude,
        supportsCommand: supportsCommand === 1,
      }),
    ),
);

const LabelledAgents = storedRows<
  [apId: string, customLabels: Labels, type: string | null, owner: string | null, ownerId: string | null]
>().transform((rows) =>
  rows.map(([apId, customLabels, accessPointType, owner, ownerId]) => ({
    apId,
    ownerId,
    labels: labelsOf({ apId, customLabels, accessPointType, owner }),
  })),
);

const WatchedAgents = storedRows<
  [
    apId: string,
    customLabels: Labels,
    type: string | null,
    owner: string | null,
    ownerId: string | null,
    interval: number | null,
  ]
>().transform((rows) =>
  rows.map(([apId, customLabels, accessPointType, owner, ownerId, interval]) => ({
    apId,
    ownerId,
    labels: labelsOf({ apId, customLabels, accessPointType, owner }),
    interval,
  })),
);

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
    configuration: storedObject<Record<string, unknown>>(),
    onboard: Flag,
    labels: storedObject<Labels>(),
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

const Found = z.tuple([z.object({ found: z.string() })]);
const Names = json.pipe(z.array(z.string()));

/** The type as JSON, which stays escaped: a lone surrogate is not valid UTF-8, and one agent's would make the whole text unreadable. */
const accessPointType = sql`json(case when json_type(configuration, '$.access_point_type') = 'text'
  and length(configuration -> '$.access_point_type') <= ${MAX_TYPE_LENGTH + '""'.length}
  then configuration -> '$.access_point_type' end)`;

const interval = sql`case when json_type(configuration, '$.interval') in ('integer', 'real') then configuration ->> '$.interval' end`;
const position = sql`configuration -> '$.geolocation.latitude', configuration -> '$.geolocation.longitude'`;

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

  /** Returns rows as one text: the client takes several times as long to read ten thousand rows. */
  const textOf = async <S extends z.ZodType>(schema: S, row: SQL, condition: SQL, limit = ALL_ROWS) => {
    const selected = sql`select * from ${agents} where ${condition} order by ap_id limit ${limit}`;
    const rows = await query(database.all(sql`select json_group_array(${row}) as found from (${selected})`));
    return schema.parse(Found.parse(rows)[0].found);
  };
  /** Reads in pages: the JSON text of each page is in memory several times. */
  const allOf = async <A extends { apId: string }>(schema: z.ZodType<A[]>, row: SQL, filter: AgentFilter) => {
    const all: A[] = [];
    for (let after: string | undefined; ; after = all.at(-1)?.apId) {
      const condition = sql`${isAfter(after)} and ${isChosen(filter)}`;
      const next = await textOf(schema, row, condition, PAGE_OUTLINES);
      for (const agent of next) all.push(agent);
      if (next.length < PAGE_OUTLINES) return all;
    }
  };
  const names: AgentLists["names"] = (filter) => textOf(Names, sql`ap_id`, isChosen(filter));

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

    labelled: () =>
      allOf(LabelledAgents, sql`json_array(ap_id, json(labels), ${accessPointType}, owner, owner_id)`, {}),

    watched: (filter) =>
      allOf(
        WatchedAgents,
        sql`json_array(ap_id, json(labels), ${accessPointType}, owner, owner_id, ${interval})`,
        filter,
      ),

    outlines: () =>
      allOf(
        AgentOutlines,
        sql`json_array(ap_id, onboard, ${accessPointType}, ${position}, ${interval}, labels ->> '$.site')`,
        {},
      ),

    commandTargets: (names, filter) =>
      allOf(CommandTargets, sql`json_array(ap_id, ${accessPointType}, ${position}, ${supportsOneOf(names)})`, filter),
  };
}
