import { and, gt, inArray, lt, type SQL, sql } from "drizzle-orm";
import { sleep } from "../../lib/deadline.ts";
import { TooMany } from "../../lib/errors.ts";
import { type Database, query } from "../../storage/libsql.ts";
import { attempts } from "../account-tables.ts";
import { anonymous, auditIf, FAILED_LOGINS } from "../audit.ts";

const WINDOW_MS = 60_000;
const POLL_MS = 50;
const MAX_WAIT_MS = 30_000;
const REQUERY_AFTER_MS = 1_000;
/** Longer than any attempt runs. */
const STALE_AFTER_MS = 20_000;

/** Limits attempts per minute. The database holds the counters, so that all isolates share them. */
export interface RateLimiter {
  /** Increments the counter of `key`. Throws `TooMany` if it exceeds `max`. */
  take(key: string, max: number): Promise<void>;
  /**
   * Runs an attempt, which fails by returning `undefined`. Throws `TooMany` instead if one of the limits is reached. A failure counts for
   * all limits. An attempt in flight counts as failed until it succeeds: of many concurrent attempts the later ones wait.
   */
  limitFailures<T>(limits: readonly FailureLimit[], attempt: () => Promise<T | undefined>): Promise<T | undefined>;
}

export interface FailureLimit {
  key: string;
  /** Failures per minute. */
  max: number;
  /** Error detail for the caller if this limit is reached. */
  message?: string;
  report?: FailureReport;
}

/** An entry in the audit trail, once within the minute. */
export interface FailureReport {
  /** Number of the failure that is reported. */
  at: number;
  object: string;
  /** Reports only failures of existing accounts: people type passwords into the field for the name by mistake. */
  condition: SQL;
  address: string | undefined;
  requestId: string;
}

interface Counter {
  key: string;
  count: number;
  expiresAt: Date;
}

export function createRateLimiter(database: Database, now: () => number = Date.now): RateLimiter {
  const inFlight = new InFlight(now);
  const tooMany = ({ expiresAt }: Counter, message?: string): TooMany =>
    new TooMany(Math.max(1, Math.ceil((expiresAt.getTime() - now()) / 1000)), message);

  const readCounters = async (keys: string[]): Promise<Map<string, Counter>> => {
    const rows = await query(
      database
        .select()
        .from(attempts)
        .where(and(inArray(attempts.key, keys), gt(attempts.expiresAt, new Date(now())))),
    );
    return new Map(rows.map((row) => [row.key, row]));
  };

  const increment = async (keys: string[], limits: readonly FailureLimit[] = []): Promise<Counter[]> => {
    const nowMs = now();
    const expiresAt = new Date(nowMs + WINDOW_MS);
    const isCurrent = sql`${attempts.expiresAt} > ${nowMs}`;
    const [rows] = await query(
      database.batch([
        database
          .insert(attempts)
          .values(keys.map((key) => ({ key, count: 1, expiresAt })))
          .onConflictDoUpdate({
            target: attempts.key,
            set: {
              count: sql`case when ${isCurrent} then ${attempts.count} + 1 else 1 end`,
              expiresAt: sql`case when ${isCurrent} then ${attempts.expiresAt} else ${expiresAt.getTime()} end`,
            },
          })
          .returning(),
        // In the same transaction, and only when the counter has exactly this value: one entry within the minute.
        ...limits.flatMap(({ key, report }) => (report === undefined ? [] : [auditReport(database, key, report)])),
        database.delete(attempts).where(lt(attempts.expiresAt, new Date(nowMs - WINDOW_MS))),
      ]),
    );
    return rows;
  };

  /**
   * Adds an attempt to the queue of every limit. Waits until the failures so far leave room for it and for all attempts ahead of it.
   * Polls, because a promise of another request may never settle.
   */
  const enter = async (limits: readonly FailureLimit[]): Promise<Attempt> => {
    const keys = limits.map(({ key }) => key);
    const attempt = inFlight.add(keys);
    try {
      const deadlineMs = now() + MAX_WAIT_MS;
      for (let queried = { positions: "", atMs: 0 }; now() < deadlineMs; ) {
        // Read before the query: an attempt that ends after this is either in the counters or still in these positions.
        const positions = limits.map(({ key, max }) => inFlight.position(attempt, key, max));
        const mayFit = limits.every(({ max }, i) => (positions[i] ?? 0) <= max);
        // The counters rarely change unless the queue moves.
        const isOutdated = queried.positions !== positions.join() || queried.atMs + REQUERY_AFTER_MS <= now();
        if (mayFit && isOutdated) {
          queried = { positions: positions.join(), atMs: now() };
          const failures = await readCounters(keys);
          for (const { key, max, message } of limits) {
            const counter = failures.get(key);
            if (counter !== undefined && counter.count >= max) throw tooMany(counter, message);
          }
          if (limits.every(({ key, max }, i) => (failures.get(key)?.count ?? 0) + (positions[i] ?? 0) <= max))
            return attempt;
        }
        await sleep(POLL_MS * (1 + Math.random()));
      }
      throw new TooMany(1);
    } catch (error) {
      inFlight.remove(attempt);
      throw error;
    }
  };

  return {
    async take(key, max) {
      const [counter] = await increment([key]);
      if (counter !== undefined && counter.count > max) throw tooMany(counter);
    },

    async limitFailures(limits, run) {
      const attempt = await enter(limits);
      try {
        const result = await run();
        if (result === undefined) await increment(attempt.keys, limits);
        return result;
      } finally {
        inFlight.remove(attempt);
      }
    },
  };
}

function auditReport(database: Database, key: string, { at, object, condition, address, requestId }: FailureReport) {
  const isReached = sql`exists (select 1 from ${attempts} where key = ${key} and count = ${at}) and ${condition}`;
  const detail = JSON.stringify({ failures: at, address });
  return auditIf(database, isReached, anonymous(requestId), FAILED_LOGINS, object, detail);
}

interface Attempt {
  keys: string[];
  /** When the attempt last read its position. */
  seenMs: number;
}

/**
 * The running and waiting attempts of this isolate, in one queue per limit, in the order of arrival. Each attempt counts those ahead of
 * it, so the last one that may run has counted all others. An attempt that ends without removing itself, because its client closed the
 * connection, is removed when it is stale.
 */
class InFlight {
  readonly #queues = new Map<string, Set<Attempt>>();
  readonly #now: () => number;

  constructor(now: () => number) {
    this.#now = now;
  }

  add(keys: string[]): Attempt {
    const attempt = { keys, seenMs: this.#now() };
    for (const key of keys) this.#queues.set(key, (this.#queues.get(key) ?? new Set()).add(attempt));
    return attempt;
  }

  /** Returns the position of the attempt in a queue, from 1. Returns `max + 1` for all positions after `max`. */
  position(attempt: Attempt, key: string, max: number): number {
    attempt.seenMs = this.#now();
    let position = 1;
    for (const other of this.#queues.get(key) ?? []) {
      if (other === attempt || position > max) break;
      if (other.seenMs < attempt.seenMs - STALE_AFTER_MS) this.remove(other);
      else position++;
    }
    return position;
  }

  remove(attempt: Attempt): void {
    for (const key of attempt.keys) {
      const queue = this.#queues.get(key);
      queue?.delete(attempt);
      if (queue?.size === 0) this.#queues.delete(key);
    }
  }
}
