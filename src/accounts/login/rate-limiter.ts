import { and, gt, inArray, lt, sql } from "drizzle-orm";
import { TooMany } from "../../lib/errors.ts";
import { type Database, query } from "../../storage/libsql.ts";
import { attempts } from "../account-tables.ts";

/** How often a thing may be tried within a minute. Kept in the database, so that every isolate counts the same. */

const WINDOW_MS = 60_000;
const POLL_MS = 50;
const MAX_WAIT_MS = 30_000;
const ASK_AGAIN_MS = 1_000;
/** Longer than any attempt runs. */
const MAX_SILENT_MS = 20_000;

export interface RateLimiter {
  /** Counts `key` once more and refuses (`TooMany`) what is over `max`. */
  take(key: string, max: number): Promise<void>;
  /**
   * Runs an attempt that fails by returning `undefined`, and refuses it (`TooMany`) if one of the limits is reached. A failure counts
   * for all limits. Running attempts count as failed until they succeed: of many at once, the others wait their turn.
   */
  limitFailures<T>(limits: readonly FailureLimit[], attempt: () => Promise<T | undefined>): Promise<T | undefined>;
}

export interface FailureLimit {
  key: string;
  /** Failures per minute. */
  max: number;
  /** What the caller reads if this limit is reached. */
  refusal?: string;
}

interface Tally {
  key: string;
  count: number;
  expiresAt: Date;
}

export function createRateLimiter(database: Database, now: () => number = Date.now): RateLimiter {
  const lines = new Lines(now);
  const refusal = ({ expiresAt }: Tally, message?: string): TooMany =>
    new TooMany(Math.max(1, Math.ceil((expiresAt.getTime() - now()) / 1000)), message);

  const talliesOf = async (keys: string[]): Promise<Map<string, Tally>> => {
    const rows = await query(
      database
        .select()
        .from(attempts)
        .where(and(inArray(attempts.key, keys), gt(attempts.expiresAt, new Date(now())))),
    );
    return new Map(rows.map((row) => [row.key, row]));
  };

  const count = async (keys: string[]): Promise<Tally[]> => {
    const nowMs = now();
    const expiresAt = new Date(nowMs + WINDOW_MS);
    const runs = sql`${attempts.expiresAt} > ${nowMs}`;
    const [rows] = await query(
      database.batch([
        database
          .insert(attempts)
          .values(keys.map((key) => ({ key, count: 1, expiresAt })))
          .onConflictDoUpdate({
            target: attempts.key,
            set: {
              count: sql`case when ${runs} then ${attempts.count} + 1 else 1 end`,
              expiresAt: sql`case when ${runs} then ${attempts.expiresAt} else ${expiresAt.getTime()} end`,
            },
          })
          .returning(),
        database.delete(attempts).where(lt(attempts.expiresAt, new Date(nowMs - WINDOW_MS))),
      ]),
    );
    return rows;
  };

  /**
   * Joins the line of every limit, and waits until the failures so far leave room for all that stand before it and for itself. Each
   * waits by polling: a promise of another request may never settle.
   */
  const enter = async (limits: readonly FailureLimit[]): Promise<Place> => {
    const keys = limits.map(({ key }) => key);
    const place = lines.join(keys);
    try {
      const deadlineMs = now() + MAX_WAIT_MS;
      for (let asked = { standing: "", atMs: 0 }; now() < deadlineMs; ) {
        // Read before the question: an attempt that has left since then is in the answer, or still counts as standing in line.
        const standing = limits.map(({ key, max }) => lines.rank(place, key, max));
        const isNear = limits.every(({ max }, i) => (standing[i] ?? 0) <= max);
        // The answer hardly ever changes unless the line moves.
        const isNew = asked.standing !== standing.join() || asked.atMs + ASK_AGAIN_MS <= now();
        if (isNear && isNew) {
          asked = { standing: standing.join(), atMs: now() };
          const failed = await talliesOf(keys);
          for (const { key, max, refusal: message } of limits) {
            const recorder = failed.get(key);
            if (recorder !== undefined && recorder.count >= max) throw refusal(recorder, message);
          }
          if (limits.every(({ key, max }, i) => (failed.get(key)?.count ?? 0) + (standing[i] ?? 0) <= max))
            return place;
        }
        await new Promise((resolve) => setTimeout(resolve, POLL_MS * (1 + Math.random())));
      }
      throw new TooMany(1);
    } catch (error) {
      lines.leave(place);
      throw error;
    }
  };

  return {
    async take(key, max) {
      const [recorder] = await count([key]);
      if (recorder !== undefined && recorder.count > max) throw refusal(recorder);
    },

    async limitFailures(limits, attempt) {
      const place = await enter(limits);
      try {
        const result = await attempt();
        if (result === undefined) await count(place.keys);
        return result;
      } finally {
        lines.leave(place);
      }
    },
  };
}

interface Place {
  keys: string[];
  /** When it last looked at a line. */
  seenMs: number;
}

/**
 * The attempts of this isolate that run or wait, by what limits them, in the order in which they came. Each counts those before it, so
 * the last one that may run has counted all others. An attempt that ended without leaving (its client closed the connection) is
 * dropped in time.
 */
class Lines {
  readonly #lines = new Map<string, Set<Place>>();
  readonly #now: () => number;

  constructor(now: () => number) {
    this.#now = now;
  }

  join(keys: string[]): Place {
    const place = { keys, seenMs: this.#now() };
    for (const key of keys) this.#lines.set(key, (this.#lines.get(key) ?? new Set()).add(place));
    return place;
  }

  /** Returns the place's position in a line, from 1, and `max + 1` for all that are further back. */
  rank(place: Place, key: string, max: number): number {
    place.seenMs = this.#now();
    let rank = 1;
    for (const other of this.#lines.get(key) ?? []) {
      if (other === place || rank > max) break;
      if (other.seenMs < place.seenMs - MAX_SILENT_MS) this.leave(other);
      else rank++;
    }
    return rank;
  }

  leave(place: Place): void {
    for (const key of place.keys) {
      const line = this.#lines.get(key);
      line?.delete(place);
      if (line?.size === 0) this.#lines.delete(key);
    }
  }
}
