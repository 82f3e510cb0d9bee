import { and, eq, gt, lt, sql } from "drizzle-orm";
import { TooMany } from "../errors.ts";
import { type Database, reach } from "./database.ts";
import { attempts } from "./tables.ts";

/** How often a thing may be tried within a minute. Kept in the database, so that every isolate counts the same. */

const WINDOW_MS = 60_000;

export interface Attempts {
  /** Refuses (`TooMany`) while `key` has been counted `max` times. */
  check(key: string, max: number): Promise<void>;
  /** Counts `key` once more. */
  count(key: string): Promise<void>;
  /** Both in one: counts, and refuses what is over `max`. */
  take(key: string, max: number): Promise<void>;
}

export function createAttempts(database: Database, now: () => number = Date.now): Attempts {
  const refuseOver = (max: number, row: { count: number; expiresAt: Date } | undefined): void => {
    if (row === undefined || row.count <= max) return;
    throw new TooMany(Math.max(1, Math.ceil((row.expiresAt.getTime() - now()) / 1000)));
  };
  const bump = async (key: string) => {
    const nowMs = now();
    const expiresAt = new Date(nowMs + WINDOW_MS);
    const runs = sql`${attempts.expiresAt} > ${nowMs}`;
    const [rows] = await reach(
      database.batch([
        database
          .insert(attempts)
          .values({ key, count: 1, expiresAt })
          .onConflictDoUpdate({
            target: attempts.key,
            set: {
              count: sql`case when ${runs} then ${attempts.count} + 1 else 1 end`,
              expiresAt: sql`case when ${runs} then ${attempts.expiresAt} else ${expiresAt.getTime()} end`,
            },
          })
          .returning({ count: attempts.count, expiresAt: attempts.expiresAt }),
        database.delete(attempts).where(lt(attempts.expiresAt, new Date(nowMs - WINDOW_MS))),
      ]),
    );
    return rows[0];
  };

  return {
    async check(key, max) {
      const rows = await reach(
        database
          .select({ count: attempts.count, expiresAt: attempts.expiresAt })
          .from(attempts)
          .where(and(eq(attempts.key, key), gt(attempts.expiresAt, new Date(now())))),
      );
      refuseOver(max - 1, rows[0]);
    },

    async count(key) {
      await bump(key);
    },

    async take(key, max) {
      refuseOver(max, await bump(key));
    },
  };
}
