import { createClient, LibsqlError } from "@libsql/client/http";
import { drizzle } from "drizzle-orm/libsql/http";
import { withDeadline } from "../lib/deadline.ts";
import { Unavailable } from "../lib/errors.ts";

export interface DatabaseOptions {
  url: string;
  authToken?: string | undefined;
  /** Default: shorter than the two seconds within which a caller must learn of an outage. */
  timeoutMs?: number;
}

const TIMEOUT_MS = 1_500;

/** A `limit` that returns all rows. SQLite requires a limit for an offset, and Drizzle omits a negative one. */
export const ALL_ROWS = Number.MAX_SAFE_INTEGER;

export type Database = ReturnType<typeof createDatabase>;

export function createDatabase({ url, authToken, timeoutMs = TIMEOUT_MS }: DatabaseOptions) {
  const client = createClient({
    url,
    ...(authToken !== undefined && { authToken }),
    // Disables the client's queue: it would run a query inside another request, and lose the query when that request ends.
    // (Zero means the default of twenty.)
    concurrency: Number.POSITIVE_INFINITY,
    fetch: (request: Request) =>
      withDeadline(timeoutMs, async (signal) => {
        const response = await fetch(request, { signal });
        // Reads the body here: the deadline covers the whole response.
        return new Response(await response.arrayBuffer(), response);
      }),
  });
  return drizzle(client);
}

/** The database is busy, or its disk or memory is full. */
const RETRYABLE_CODES = /^SQLITE_(BUSY|LOCKED|FULL|IOERR|CANTOPEN|NOMEM)/;

/** Awaits a query. Throws `Unavailable` if the database does not respond or may accept a retry. Rethrows any other error. */
export async function query<T>(result: PromiseLike<T>): Promise<T> {
  try {
    return await result;
  } catch (error) {
    const code = sqliteCode(error);
    if (code === undefined || RETRYABLE_CODES.test(code)) throw new Unavailable("accounts database", error);
    throw error;
  }
}

export function isUniqueViolation(error: unknown): boolean {
  return sqliteCode(error)?.startsWith("SQLITE_CONSTRAINT") ?? false;
}

/** Returns whether the database rejects a value, and always will. */
export const isRejected = (error: unknown): boolean =>
  /^SQLITE_(CONSTRAINT|TOOBIG|MISMATCH)/.test(sqliteCode(error) ?? "");

/** Returns the database's error code from the chain of causes. Undefined if the database did not respond. */
function sqliteCode(error: unknown): string | undefined {
  for (let cause = error; cause instanceof Error; cause = cause.cause) {
    if (cause instanceof LibsqlError && cause.code.startsWith("SQL")) return cause.code;
  }
  return undefined;
}
