import { and, asc, eq, isNotNull, type SQL, sql } from "drizzle-orm";
import * as z from "zod";
import { type AuditActor, auditIfChanged } from "../accounts/audit.ts";
import { Conflict } from "../lib/errors.ts";
import {
  MAX_BACKLOG,
  OWNER_KINDS,
  SUBSCRIPTION_LIMITS,
  SubscriptionFilter,
  type SubscriptionsQuery,
  TARGET_KINDS,
} from "../schemas/subscriptions.ts";
import { type Database, query } from "../storage/libsql.ts";
import { events, subscriptions } from "./event-tables.ts";

export const SubscriptionRow = z.object({
  id: z.string(),
  name: z.string(),
  ownerId: z.string(),
  owner: z.string(),
  ownerKind: z.enum(OWNER_KINDS),
  filter: SubscriptionFilter,
  kind: z.enum(TARGET_KINDS),
  address: z.string(),
  sealedSecret: z.string().nullable(),
  hasCredentials: z.boolean(),
  createdAt: z.date(),
  revision: z.int(),
  cursor: z.int(),
  dueAt: z.date().nullable(),
  failures: z.int(),
  failingSince: z.date().nullable(),
  lastError: z.string().nullable(),
  deliveredAt: z.date().nullable(),
  stoppedAt: z.date().nullable(),
});
export type SubscriptionRow = z.output<typeof SubscriptionRow>;

const ListedSubscription = SubscriptionRow.extend({ backlog: z.int() });
export type ListedSubscription = z.output<typeof ListedSubscription>;

export type NewSubscription = Pick<
  SubscriptionRow,
  "id" | "name" | "ownerId" | "owner" | "ownerKind" | "filter" | "kind" | "address" | "sealedSecret" | "hasCredentials"
>;
export type SubscriptionChanges = Partial<
  Pick<SubscriptionRow, "name" | "filter" | "address" | "sealedSecret" | "hasCredentials">
>;

export interface SubscriptionStore {
  find(id: string): Promise<ListedSubscription | undefined>;
  /** Returns the oldest first. @param ownerId of the only account whose subscriptions it returns */
  list(page: SubscriptionsQuery, ownerId?: string): Promise<ListedSubscription[]>;
  /** The delivery starts with the next event. Throws `Conflict` if there are too many subscriptions. */
  insert(subscription: NewSubscription, by: AuditActor): Promise<void>;
  /** @param action for the audit trail. @param restarts whether it ends the back-off */
  update(id: string, changes: SubscriptionChanges, by: AuditActor, action: string, restarts: boolean): Promise<void>;
  /** Starts a stopped subscription again. Has no effect on others. */
  resume(id: string, by: AuditActor): Promise<void>;
  delete(id: string, by: AuditActor): Promise<void>;
}

const objectOf = (id: string): string => `subscription:${id}`;

/** Counts the events of the filter's types and severities. Bounded: it looks at the next events only, by their ids. */
const BACKLOG: SQL<number> = sql<number>`(select count(*) from (
    select type, severity from ${events} where ${events.id} > ${subscriptions.cursor} order by id limit ${MAX_BACKLOG}
  ) where (json_array_length(${subscriptions.filter}, '$.types') = 0
      or type in (select value from json_each(${subscriptions.filter}, '$.types')))
    and instr(case ${subscriptions.filter} ->> '$.severity' when 'critical' then 'critical'
      when 'warning' then 'warning critical' else 'info warning critical' end, severity) > 0)`;

const NO_FAILURES = { dueAt: null, failures: 0, failingSince: null, lastError: null, stoppedAt: null };

export function createSubscriptionStore(database: Database): SubscriptionStore {
  const select = () => {
    const { shape } = SubscriptionRow;
    const columns = Object.fromEntries(
      Object.keys(shape).map((name) => [name, subscriptions[name as keyof typeof shape]]),
    );
    return database.select({ ...columns, backlog: BACKLOG }).from(subscriptions);
  };
  const countOf = (where: SQL) => sql`(select count(*) from ${subscriptions} where ${where})`;

  return {
    async find(id) {
      const [row] = await query(select().where(eq(subscriptions.id, id)));
      return row === undefined ? undefined : ListedSubscription.parse(row);
    },

    async list({ limit, offset }, ownerId) {
      const rows = await query(
        select()
          .where(ownerId === undefined ? undefined : eq(subscriptions.ownerId, ownerId))
          .orderBy(asc(subscriptions.createdAt), asc(subscriptions.id))
          .limit(limit)
          .offset(offset),
      );
      return z.array(ListedSubscription).parse(rows);
    },

    async insert({ id, name, ownerId, owner, ownerKind, filter, kind, address, sealedSecret, hasCredentials }, by) {
      const { perAccount, total } = SUBSCRIPTION_LIMITS;
      const isOwn = sql`owner_id = ${ownerId}`;
      const detail = JSON.stringify({ name, filter, kind });
      const [inserted, , [counts]] = await query(
        database.batch([
          database.run(
            sql`insert into ${subscriptions} (id, name, owner_id, owner, owner_kind, filter, kind, address, sealed_secret,
                  has_credentials, created_at, cursor)
                select ${id}, ${name}, ${ownerId}, ${owner}, ${ownerKind}, ${JSON.stringify(filter)}, ${kind}, ${address},
                  ${sealedSecret}, ${Number(hasCredentials)}, ${Date.now()}, (select coalesce(max(id), 0) from ${events})
                where ${countOf(isOwn)} < ${perAccount} and ${countOf(sql`true`)} < ${total}`,
          ),
          auditIfChanged(database, by, "create", objectOf(id), detail),
          database.select({ own: sql<number>`count(*)` }).from(subscriptions).where(isOwn),
        ]),
      );
      if (inserted.rowsAffected > 0) return;
      throw new Conflict(
        (counts?.own ?? 0) >= perAccount
          ? `Your account has ${perAccount} subscriptions. Delete some of them first`
          : `There are ${total.toLocaleString("en-US")} subscriptions, which is the limit`,
      );
    },

    async update(id, changes, by, action, restarts) {
      const { name, filter } = changes;
      await query(
        database.batch([
          database
            .update(subscriptions)
            .set({ ...changes, ...(restarts && NO_FAILURES), revision: sql`${subscriptions.revision} + 1` })
            .where(eq(subscriptions.id, id)),
          auditIfChanged(database, by, action, objectOf(id), JSON.stringify({ name, filter })),
        ]),
      );
    },

    async resume(id, by) {
      await query(
        database.batch([
          database
            .update(subscriptions)
            .set({ ...NO_FAILURES, revision: sql`${subscriptions.revision} + 1` })
            .where(and(eq(subscriptions.id, id), isNotNull(subscriptions.stoppedAt))),
          auditIfChanged(database, by, "resume", objectOf(id)),
        ]),
      );
    },

    async delete(id, by) {
      await query(
        database.batch([
          database.delete(subscriptions).where(eq(subscriptions.id, id)),
          auditIfChanged(database, by, "delete", objectOf(id)),
        ]),
      );
    },
  };
}
