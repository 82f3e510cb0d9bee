import type { IsCredentialCurrent } from "../../accounts/login/credential-check.ts";
import { describeError, log } from "../../lib/log.ts";
import type { Reader } from "./handshake.ts";

/** Maximum age of a check when messages are sent. The rest of the service caches credentials for the same time. */
const FRESH_MS = 5_000;
/**
 * How often an idle socket is checked; it receives nothing that could leak. Each check wakes a sleeping object, which then holds three
 * files and about 200 KB for ten seconds.
 */
const STALE_MS = 5 * 60_000;
/** Delays before a failed check is retried: if a message waits for it, and if none does. */
const RETRY_MS = 5_000;
const RETRY_IDLE_MS = 60_000;

export interface AccessChecksOptions {
  isCredentialCurrent: IsCredentialCurrent;
  now: () => number;
}

export interface Access {
  isAllowed: boolean;
  checkedMs: number;
}

/** Checks whether the readers of a job's sockets still have access. Concurrent checks share one query. */
export class AccessChecks {
  readonly #options: AccessChecksOptions;
  /** Running checks, one per socket. */
  readonly #checks = new Map<WebSocket, Promise<void>>();
  /** Running queries by reader: one reader may have several sockets. */
  readonly #queries = new Map<string, Promise<Access>>();

  constructor(options: AccessChecksOptions) {
    this.#options = options;
  }

  /** Whether a check is recent enough to send messages. */
  isFresh(checkedMs: number): boolean {
    return this.#options.now() - checkedMs <= FRESH_MS;
  }

  /** Whether a check is too old even for an idle socket. */
  isStale(checkedMs: number): boolean {
    return this.#options.now() - checkedMs >= STALE_MS;
  }

  /** @param isBehind whether messages wait to be sent to the socket */
  nextDueMs(checkedMs: number, isBehind: boolean): number {
    const nowMs = this.#options.now();
    return isBehind ? nowMs + RETRY_MS : nextIdleCheckMs(checkedMs, nowMs);
  }

  /** Checks a socket's reader. Calls `onResult` unless the check fails. A call during a running check waits for that one. */
  check(socket: WebSocket, reader: Reader, onResult: (access: Access) => void): Promise<void> {
    let check = this.#checks.get(socket);
    if (check === undefined) {
      check = this.#check(reader, onResult).finally(() => this.#checks.delete(socket));
      this.#checks.set(socket, check);
    }
    return check;
  }

  /** Waits for the running checks. They may not have seen the newest changes. */
  async settle(): Promise<void> {
    await Promise.all(this.#checks.values());
  }

  async #check(reader: Reader, onResult: (access: Access) => void): Promise<void> {
    let access: Access;
    try {
      access = await this.#query(reader);
    } catch (error) {
      // The socket stays open and its messages stay stored. The next message or the alarm retries the check.
      log.warn("reader access check failed", { error: describeError(error) });
      return;
    }
    onResult(access);
  }

  #query(reader: Reader): Promise<Access> {
    const key = JSON.stringify([reader.kind, reader.name, reader.version, reader.target]);
    let query = this.#queries.get(key);
    if (query === undefined) {
      // Taken before the query: the account may change before the result arrives.
      const checkedMs = this.#options.now();
      query = this.#options
        .isCredentialCurrent(reader)
        .then((isAllowed) => ({ isAllowed, checkedMs }))
        .finally(() => this.#queries.delete(key));
      this.#queries.set(key, query);
    }
    return query;
  }
}

/** Returns the next fixed retry time after the check became due. A wake-up of the object in between does not postpone the retry. */
function nextIdleCheckMs(checkedMs: number, nowMs: number): number {
  const overdueMs = nowMs - (checkedMs + STALE_MS);
  return overdueMs < 0 ? checkedMs + STALE_MS : nowMs + RETRY_IDLE_MS - (overdueMs % RETRY_IDLE_MS);
}
