import type { InStatement } from "@libsql/client/http";
import { max } from "drizzle-orm";
import type { Config } from "../env.ts";
import { describeError, log } from "../lib/log.ts";
import { createDatabase, type Database } from "../storage/libsql.ts";
import { audit } from "./account-tables.ts";
import type { AuditFeed } from "./audit-feed.ts";

/** Short: the primary must respond within the same two seconds if the replica does not. */
const TIMEOUT_MS = 500;
/** After an error, the replica is not used for this time. */
const SKIP_MS = 5_000;

export interface ReplicaReads {
  /** For reads of single statements that need no changes of which this service does not know yet. */
  database: Database;
  /** Returns the feed, and remembers how far it was read. */
  follow(feed: AuditFeed): AuditFeed;
}

type Settings = Pick<Config, "LIBSQL_URL" | "LIBSQL_READ_URL" | "LIBSQL_AUTH_TOKEN">;

/**
 * Reads from a replica of the accounts database, if it has all changes of accounts that this service knows of; otherwise, and if it does not
 * respond, from the primary. Every change adds an entry to the audit trail, so the newest entry tells how far the replica is. One
 * transaction reads this entry and the data: a replica that starts lets the primary answer some of its requests, so the next request may
 * find older data.
 */
export function createReplicaReads(config: Settings): ReplicaReads {
  const { LIBSQL_URL, LIBSQL_READ_URL, LIBSQL_AUTH_TOKEN: authToken } = config;
  const database = createDatabase({ url: LIBSQL_URL, authToken });
  if (LIBSQL_READ_URL === undefined) return { database, follow: (feed) => feed };

  const replica = createDatabase({ url: LIBSQL_READ_URL, authToken, timeoutMs: TIMEOUT_MS });
  const { sql } = replica
    .select({ newest: max(audit.id) })
    .from(audit)
    .toSQL();
  /** The newest entry of the audit trail of which this service knows. */
  let mark: number | undefined;
  let skippedUntilMs = Number.NEGATIVE_INFINITY;

  /** Returns undefined if the replica is too old or does not respond. */
  async function readReplica(statement: InStatement) {
    if (mark === undefined || Date.now() < skippedUntilMs) return undefined;
    try {
      const [entry, found] = await replica.$client.batch([sql, statement], "read");
      return Number(entry?.rows[0]?.[0] ?? 0) < mark ? undefined : found;
    } catch (error) {
      skippedUntilMs = Date.now() + SKIP_MS;
      log.warn("accounts replica down", { error: describeError(error) });
      return undefined;
    }
  }

  const client = database.$client;
  const readPrimary = client.execute.bind(client);
  client.execute = async (statement: InStatement) => (await readReplica(statement)) ?? (await readPrimary(statement));
  return {
    database,
    follow: (feed) => ({
      since: async (after) => {
        const news = await feed.since(after);
        mark = Math.max(mark ?? 0, news.mark);
        return news;
      },
    }),
  };
}
