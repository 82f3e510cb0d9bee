import { max } from "drizzle-orm";
import type { Config } from "../env.ts";
import { describeError, log } from "../lib/log.ts";
import { createDatabase, type Database, query, type ReadDatabase } from "../storage/libsql.ts";
import { audit } from "./account-tables.ts";
import { type AgentLists, createAgentLists } from "./agents/agent-lists.ts";
import type { AuditFeed } from "./audit-feed.ts";

/** Short: the primary must respond within the same two seconds if the replica does not. */
const PROBE_TIMEOUT_MS = 500;
/** After an error, the replica is not used for this time. */
const SKIP_MS = 5_000;

/**
 * Reads from a replica of the accounts database, if it has all changes of accounts that this service knows of; otherwise, and if it does not
 * respond, from the primary. Every change adds an entry to the audit trail, so the newest entry tells how far the replica is.
 */
export class ReplicaReads {
  readonly #primary: Database;
  readonly #replica: Database | undefined;
  /** The replica with a short time limit. */
  readonly #probe: Database | undefined;
  readonly #now: () => number;
  /** The newest entry of the audit trail of which this service knows. */
  #mark: number | undefined;
  #skippedUntilMs = Number.NEGATIVE_INFINITY;

  constructor(
    primary: Database,
    { LIBSQL_READ_URL: url, LIBSQL_AUTH_TOKEN: authToken }: Pick<Config, "LIBSQL_READ_URL" | "LIBSQL_AUTH_TOKEN">,
    now: () => number = Date.now,
  ) {
    this.#primary = primary;
    const open = (timeoutMs?: number) =>
      url === undefined ? undefined : createDatabase({ url, authToken, ...(timeoutMs !== undefined && { timeoutMs }) });
    [this.#replica, this.#probe] = [open(), open(PROBE_TIMEOUT_MS)];
    this.#now = now;
  }

  /** Lists of all agents. Their readers keep them for some seconds anyway. */
  readonly lists: Pick<AgentLists, "labelled" | "outlines"> = {
    labelled: () => this.read((from) => createAgentLists(from).labelled()),
    outlines: () => this.read((from) => createAgentLists(from).outlines()),
  };

  readonly read: ReadDatabase = async (read) => {
    const [replica, probe] = [this.#replica, this.#probe];
    if (!replica || !probe || this.#mark === undefined || this.#now() < this.#skippedUntilMs)
      return await read(this.#primary);
    try {
      const [newest] = await query(probe.select({ id: max(audit.id) }).from(audit));
      if ((newest?.id ?? 0) >= this.#mark) return await read(replica);
    } catch (error) {
      this.#skippedUntilMs = this.#now() + SKIP_MS;
      log.warn("accounts replica down", { error: describeError(error) });
    }
    return await read(this.#primary);
  };

  /** Returns the feed, and remembers how far it was read. */
  follow(feed: AuditFeed): AuditFeed {
    return {
      since: async (mark) => {
        const news = await feed.since(mark);
        this.#mark = Math.max(this.#mark ?? 0, news.mark);
        return news;
      },
    };
  }
}
