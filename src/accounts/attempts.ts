import { and, eq, gt, lt, sql } from "drizzle-orm";
import { TooMany } from "../errors.ts";
import { type Database, reach } from "./database.ts";
import { attempts } from "./tables.ts";

/** How often a thing may be tried within a minute. Kept in the database, so that every isolate counts the same. */

const WINDOW_MS = 60_000;
const POLL_MS = 50;
const MAX_WAIT_MS = 30_000;

export interface Attempts {
  /** Counts `key` once more and refuses (`TooMany`) what is over `max`. */
  take(key: string, max: number): Promise<void>;
  /**
   * Runs an attempt that fails by coming to `undefined`, and refuses it once `max` have failed. Those that run count as failed
   * until they have succeeded: when many come at once, the others wait their turn.
   */
  limitFailures<T>(key: string, max: number, attempt: () => Promise<T | undefined>): Promise<T | undefined>;
}

interface Tally {
  count: number;
  expiresAt: Date;
}

export function createAttempts(database: Database, now: () => number = Date.now): Attempts {
  const places = new Places(now);
  const refusal = ({ expiresAt }: Tally): TooMany =>
    new TooMany(Math.max(1, Math.ceil((expiresAt.getTime() - now()) / 1000)));

  const tallyOf = async (key: string): Promise<Tally | undefined> => {
    const rows = await reach(
      database
        .select({ count: attempts.count, expiresAt: attempts.expiresAt })
        .from(attempts)
        .where(and(eq(attempts.key, key), gt(attempts.expiresAt, new Date(now())))),
    );
    return rows[0];
  };

  const count = async (key: string): Promise<Tally | undefined> => {
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

  /** Takes one of the places that failures have left. Each waits by itself: a promise of another request may never come true. */
  const enter = async (key: string, max: number): Promise<Place> => {
    for (const deadlineMs = now() + MAX_WAIT_MS; now() < deadlineMs; ) {
      if (places.taken(key) < max) {
        const place = places.take(key);
        try {
          // Asked only now, with the place taken: whoever has left by now has counted its failure before.
          const failed = await tallyOf(key);
          if (failed !== undefined && failed.count >= max) throw refusal(failed);
          if ((failed?.count ?? 0) + places.taken(key) <= max) return place;
        } catch (error) {
          places.leave(place);
          throw error;
        }
        places.leave(place);
      }
      await new Promise((resolve) => setTimeout(resolve, POLL_MS * (1 + Math.random())));
    }
    throw new TooMany(1);
  };

  return {
    async take(key, max) {
      const tally = await count(key);
      if (tally !== undefined && tally.count > max) throw refusal(tally);
    },

    async limitFailures(key, max, attempt) {
      const place = await enter(key, max);
      try {
        const result = await attempt();
        if (result === undefined) await count(key);
        return result;
      } finally {
        places.leave(place);
      }
    },
  };
}

interface Place {
  key: string;
  sinceMs: number;
}

/** Who is at it at this moment, in this isolate. Whoever went away without a word (its client hung up) is forgotten in time. */
class Places {
  readonly #places = new Map<string, Set<Place>>();
  readonly #now: () => number;

  constructor(now: () => number) {
    this.#now = now;
  }

  taken(key: string): number {
    const at = this.#places.get(key) ?? new Set();
    for (const place of at) if (place.sinceMs < this.#now() - MAX_WAIT_MS) this.leave(place);
    return at.size;
  }

  take(key: string): Place {
    const place = { key, sinceMs: this.#now() };
    const at = this.#places.get(key) ?? new Set();
    this.#places.set(key, at.add(place));
    return place;
  }

  leave(place: Place): void {
    const at = this.#places.get(place.key);
    at?.delete(place);
    if (at?.size === 0) this.#places.delete(place.key);
  }
}
