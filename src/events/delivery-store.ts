import { and, eq, isNull, sql } from "drizzle-orm";
import * as z from "zod";
import { audit } from "../accounts/account-tables.ts";
import { type Database, query } from "../storage/libsql.ts";
import { events, subscriptions } from "./event-tables.ts";
import { SubscriptionRow } from "./subscription-store.ts";

/** The newest ids. Every change of accounts, grants, groups and subscriptions adds to the audit trail. */
export interface LogHeads {
  eventId: number;
  auditId: number;
}

/** How an attempt to deliver ended. */
export interface Progress {
  /** Of the subscription. */
  id: string;
  cursor: number;
  /** Set if the target accepted an event. */
  deliveredAt?: Date | undefined;
  failure?: { error: string; failures: number; since: Date; dueAt: Date } | undefined;
}

/** How far the delivery to each subscription has come. */
export interface DeliveryStore {
  heads(): Promise<LogHeads>;
  /** Returns the subscriptions that are not stopped. */
  active(): Promise<SubscriptionRow[]>;
  /** Records how attempts ended, in one transaction. */
  record(attempts: readonly Progress[]): Promise<void>;
  /** Moves the cursors of many subscriptions that only skipped events. */
  advance(cursors: ReadonlyMap<string, number>): Promise<void>;
  /** Stops a subscription and records the event that says so, unless it is stopped already. */
  stop(subscription: SubscriptionRow, progress: Progress, stoppedAt: Date): Promise<void>;
  /** Deletes a subscription whose account does not exist any more. */
  remove(id: string): Promise<void>;
}

const Heads = z.object({ eventId: z.int().nullable(), auditId: z.int().nullable() });

export function createDeliveryStore(database: Database): DeliveryStore {
  const update = ({ id, cursor, deliveredAt, failure }: Progress, stoppedAt: Date | null = null) =>
    database
      .update(subscriptions)
      .set({
        cursor: sql`max(${subscriptions.cursor}, ${cursor})`,
        ...(deliveredAt && { deliveredAt }),
        lastError: failure?.error ?? null,
        failures: failure?.failures ?? 0,
        failingSince: failure?.since ?? null,
        dueAt: stoppedAt === null ? (failure?.dueAt ?? null) : null,
        stoppedAt,
      })
      .where(and(eq(subscriptions.id, id), isNull(subscriptions.stoppedAt)));

  return {
    async heads() {
      const [row] = await query(
        database.all(sql`select (select max(id) from ${events}) as eventId, (select max(id) from ${audit}) as auditId`),
      );
      const { eventId, auditId } = Heads.parse(row);
      return { eventId: eventId ?? 0, auditId: auditId ?? 0 };
    },

    async active() {
      const rows = await query(database.select().from(subscriptions).where(isNull(subscriptions.stoppedAt)));
      return z.array(SubscriptionRow).parse(rows);
    },

    async record(attempts) {
      const [first, ...others] = attempts.map((progress) => update(progress));
      if (first !== undefined) await query(database.batch([first, ...others]));
    },

    async advance(cursors) {
      const pairs = JSON.stringify([...cursors].map(([id, cursor]) => ({ id, cursor })));
      await query(
        database.run(
          sql`update ${subscriptions} set cursor = max(${subscriptions.cursor}, given.cursor)
              from (select value ->> '$.id' as id, value ->> '$.cursor' as cursor from json_each(${pairs})) as given
              where given.id = ${subscriptions.id}`,
        ),
      );
    },

    async stop(subscription, progress, stoppedAt) {
      const { id, name, kind, ownerId } = subscription;
      const data = {
        subscription_id: id,
        name,
        target: kind,
        error: progress.failure?.error ?? null,
        failing_since: progress.failure?.since ?? null,
      };
      await query(
        database.batch([
          update(progress, stoppedAt),
          database.run(
            sql`insert into ${events} (at, type, severity, owner_id, data)
                select ${stoppedAt.getTime()}, 'subscription.failing', 'warning', ${ownerId}, ${JSON.stringify(data)}
                where changes() > 0`,
          ),
        ]),
      );
    },

    async remove(id) {
      await query(database.delete(subscriptions).where(eq(subscriptions.id, id)));
    },
  };
}
