import type { IsCredentialCurrent } from "../../accounts/login/credential-check.ts";
import { describeError, log } from "../../lib/log.ts";
import type { Reader } from "./handshake.ts";

/** How long a check of a reader's access holds: as long as a session elsewhere in the service. */
const CHECK_HOLDS_MS = 5_000;
/**
 * How often access is checked where nothing is sent, and so nothing given away. Each check wakes a sleeping object, which then takes
 * three files and some 200 KB for ten seconds.
 */
const RECHECK_MS = 5 * 60_000;
/** After how long a check is tried again that could not be made: where a message waits for it, and where none does. */
const RETRY_MS = 5_000;
const RETRY_IDLE_MS = 60_000;

export interface AccessChecksOptions {
  isCredentialCurrent: IsCredentialCurrent;
  now: () => number;
}

export interface Access {
  isAllowed: boolean;
  askedMs: number;
}

/** Whether those who read a job's sockets still may: when that is asked, and asked once for many. */
export class AccessChecks {
  readonly #options: AccessChecksOptions;
  /** One check at a time for each socket; whoever comes meanwhile waits for the same. */
  readonly #checks = new Map<WebSocket, Promise<void>>();
  /** What is being asked of the accounts, by reader: many sockets may be one reader's. */
  readonly #lookUps = new Map<string, Promise<Access>>();

  constructor(options: AccessChecksOptions) {
    this.#options = options;
  }

  /** Whether a check is good enough for something to be sent. */
  holds(checkedMs: number): boolean {
    return this.#options.now() - checkedMs <= CHECK_HOLDS_MS;
  }

  /** Whether a check is too old even where nothing is sent. */
  isOld(checkedMs: number): boolean {
    return this.#options.now() - checkedMs >= RECHECK_MS;
  }

  nextDueMs(checkedMs: number, isBehind: boolean): number {
    const nowMs = this.#options.now();
    return isBehind ? nowMs + RETRY_MS : nextIdleCheckMs(checkedMs, nowMs);
  }

  /** Asks about a socket's reader, and hands over the answer, if there is one. */
  check(socket: WebSocket, reader: Reader, take: (access: Access) => void): Promise<void> {
    let check = this.#checks.get(socket);
    if (check === undefined) {
      check = this.#ask(reader, take).finally(() => this.#checks.delete(socket));
      this.#checks.set(socket, check);
    }
    return check;
  }

  async #ask(reader: Reader, take: (access: Access) => void): Promise<void> {
    let access: Access;
    try {
      access = await this.#lookUp(reader);
    } catch (error) {
      // The socket stays, and what it is to be sent stays stored: it is asked again with the next message, or by the alarm.
      log.warn("a reader's access could not be checked", { error: describeError(error) });
      return;
    }
    take(access);
  }

  #lookUp(reader: Reader): Promise<Access> {
    const key = JSON.stringify([reader.kind, reader.name, reader.version]);
    let lookUp = this.#lookUps.get(key);
    if (lookUp === undefined) {
      // From before the look-up: what it finds may have changed by the time it is back.
      const askedMs = this.#options.now();
      lookUp = this.#options
        .isCredentialCurrent(reader)
        .then((isAllowed) => ({ isAllowed, askedMs }))
        .finally(() => this.#lookUps.delete(key));
      this.#lookUps.set(key, lookUp);
    }
    return lookUp;
  }
}

/** Does not depend on when it is asked for: nobody can put a check off by waking the object. */
function nextIdleCheckMs(checkedMs: number, nowMs: number): number {
  const overdueMs = nowMs - (checkedMs + RECHECK_MS);
  return overdueMs < 0 ? checkedMs + RECHECK_MS : nowMs + RETRY_IDLE_MS - (overdueMs % RETRY_IDLE_MS);
}
