import { type SQL, sql } from "drizzle-orm";
import * as z from "zod";
import { agentLabels, agents, audit } from "../accounts/account-tables.ts";
import { type AgentFilter, isChosen } from "../accounts/agent-conditions.ts";
import { type AuditActor, actorText } from "../accounts/audit.ts";
import { isUnlimited } from "../auth/agent-scope.ts";
import { type Labels, SERVICE_LABELS } from "../lib/selectors.ts";
import { type LabelChanges, MAX_LABEL_KEYS, MAX_LABELS } from "../schemas/labels.ts";
import { type Database, query } from "../storage/libsql.ts";

/** Changes of labels: the same for all agents, or for each agent by its name. */
export type LabelPatches = { all: LabelChanges } | { byName: ReadonlyMap<string, LabelChanges> };

/** What patches would do to an agent. */
export interface LabelPreview {
  apId: string;
  /** The labels with the requested keys, as JSON in the order of the keys. */
  labelsText: string;
  isChanged: boolean;
  /** Number of labels that callers have set, after the change. */
  size: number;
}

/** The entry in the audit trail. */
export interface LabelAudit {
  by: AuditActor;
  object: string;
  detail: Record<string, unknown>;
}

/** Labels in libSQL. Triggers maintain the table of all labels, so this writes to the agents only. */
export interface LabelStore {
  /** Returns the labels of the agents of a filter with the number of agents, ordered by key, and by number within each key. */
  counts(filter: AgentFilter, limit: number): Promise<LabelCount[]>;
  /** Returns the keys that callers have set on the agents of a filter, in order. At most one more than `MAX_LABEL_KEYS`. */
  keys(filter: AgentFilter): Promise<string[]>;
  /** Yields the agents of a filter with the labels that callers have set, ordered by name. */
  pages(filter: AgentFilter): AsyncGenerator<{ apId: string; labels: Labels }[]>;
  /**
   * Returns what patches would do to the agents of a filter, ordered by name. With patches by name, only of those agents.
   *
   * @param keys of the labels to return: those that decide whether the change is allowed
   */
  preview(filter: AgentFilter, patches: LabelPatches, keys: readonly string[], limit: number): Promise<LabelPreview[]>;
  /**
   * Applies patches to agents and audits them. Changes nothing and returns false if the labels with these keys are not those of the
   * previews any more, or if an agent would have too many labels.
   */
  apply(
    previews: readonly LabelPreview[],
    patches: LabelPatches,
    keys: readonly string[],
    entry: LabelAudit,
  ): Promise<boolean>;
}

const LabelCount = z
  .tuple([z.string(), z.int(), z.string(), z.int()])
  .transform(([key, agentsOfKey, value, agents]) => ({ key, agentsOfKey, value, agents }));
export type LabelCount = z.output<typeof LabelCount>;

const Flag = z.literal([0, 1]).transform((flag) => flag === 1);
const Preview = z
  .tuple([z.string(), z.string(), Flag, z.int()])
  .transform(([apId, labelsText, isChanged, size]): LabelPreview => ({ apId, labelsText, isChanged, size }));
/** Labels in the form of the database. */
export const StoredLabels = z.record(z.string(), z.string());
const PageItem = z.tuple([z.string(), StoredLabels]).transform(([apId, labels]) => ({ apId, labels }));

const PAGE_AGENTS = 1_000;
const LABEL_ACTION = "label";

export function createLabelStore(database: Database): LabelStore {
  /** Runs a query that returns all rows as one JSON text. The client takes several times as long to read thousands of rows. */
  const rowsOf = async <S extends z.ZodType>(schema: S, select: SQL): Promise<z.output<S>[]> => {
    const found = await query(database.all(select));
    const [{ rows }] = z.tuple([z.object({ rows: z.string() })]).parse(found);
    return z.array(schema).parse(JSON.parse(rows));
  };

  return {
    async counts(filter, limit) {
      return await rowsOf(
        LabelCount,
        sql`select json_group_array(json_array(key, total, value, found)) as rows from (
          select key, value, found, sum(found) over (partition by key) as total,
            row_number() over (partition by key order by found desc, value) as place, dense_rank() over (order by key) as key_place
          from (select key, value, count(*) as found from ${agentLabels} where ${isOfChosen(filter)} group by key, value)
          order by key, place)
        where place <= ${limit} and key_place <= ${MAX_LABEL_KEYS}`,
      );
    },

    async keys(filter) {
      const ofService = JSON.stringify(SERVICE_LABELS);
      return await rowsOf(
        z.string(),
        sql`select json_group_array(key) as rows from (
          select distinct key from ${agentLabels}
          where key not in (select value from json_each(${ofService})) and ${isOfChosen(filter)}
          order by key limit ${MAX_LABEL_KEYS + 1})`,
      );
    },

    async *pages(filter) {
      for (let after = ""; ; ) {
        const page = await rowsOf(
          PageItem,
          sql`select json_group_array(json_array(ap_id, json(labels))) as rows from (
            select ap_id, labels from ${agents} where ap_id > ${after} and ${isChosen(filter)}
            order by ap_id limit ${PAGE_AGENTS})`,
        );
        if (page.length > 0) yield page;
        if (page.length < PAGE_AGENTS) return;
        after = page.at(-1)?.apId ?? "";
      }
    },

    async preview(filter, patches, keys, limit) {
      // A cross join keeps the order of the tables: SQLite may otherwise read the whole JSON for each agent.
      const given =
        "all" in patches
          ? sql`(select ${JSON.stringify(patches.all)} as patch) as given cross join ${agents}`
          : sql`(select key as name, value as patch from json_each(${JSON.stringify(Object.fromEntries(patches.byName))})) as given
              cross join ${agents} on ap_id = name`;
      return await rowsOf(
        Preview,
        // Appending an empty text makes the labels a text, which a JSON array would otherwise contain as an object.
        sql`select json_group_array(json_array(ap_id, decisive || '', patched <> labels, (select count(*) from json_each(patched)))) as rows
          from (select ap_id, labels, json_patch(labels, patch) as patched, ${labelsWith(keys)} as decisive
            from ${given} where ${isChosen(filter)} order by ap_id limit ${limit})`,
      );
    },

    async apply(previews, patches, keys, { by, object, detail }) {
      const shared = "all" in patches ? JSON.stringify(patches.all) : null;
      const ofAgent = (apId: string) => ("all" in patches ? [] : [patches.byName.get(apId) ?? {}]);
      const rows = previews.map(({ apId, labelsText }) => [apId, labelsText, ...ofAgent(apId)]);
      const given = sql`(select value ->> 0 as name, value ->> 1 as decisive, coalesce(value ->> 2, ${shared}) as patch
        from json_each(${JSON.stringify(rows)})) as given`;
      const [entries] = await query(
        database.batch([
          // The entry comes first: it exists only if all agents are as they were, and the update depends on it.
          database.run(
            sql`insert into ${audit} (at, request_id, actor, action, object, detail)
                select ${Date.now()}, ${by.requestId}, ${actorText(by)}, ${LABEL_ACTION}, ${object}, ${JSON.stringify(detail)}
                where ${previews.length} = (
                  select count(*) from ${given} cross join ${agents} on ap_id = name
                  where decisive = ${labelsWith(keys)} and (select count(*) from json_each(json_patch(labels, patch))) <= ${MAX_LABELS})`,
          ),
          database.run(
            sql`update ${agents} set labels = json_patch(labels, patch) from ${given}
                where ap_id = name and (select changes()) > 0`,
          ),
        ]),
      );
      return entries.rowsAffected > 0;
    },
  };
}

/** Whether a row of the table of labels belongs to an agent of a filter. */
const isOfChosen = (filter: AgentFilter): SQL =>
  isUnlimited(filter.scope ?? {}) && (filter.selector ?? []).length === 0 && filter.apIds === undefined
    ? sql`true`
    : sql`ap_id in (select ap_id from ${agents} where ${isChosen(filter)})`;

/** The labels of an agent that have these keys, as JSON in the order of the keys. */
const labelsWith = (keys: readonly string[]): SQL =>
  keys.length === 0
    ? sql`'{}'`
    : sql`(select json_group_object(key, value) from (
        select key, value from ${agentLabels} as label
        where label.ap_id = ${agents}.ap_id and key in (select value from json_each(${JSON.stringify(keys)}))
        order by key))`;
