import { createClient, LibsqlError } from "@libsql/client/web";
import { drizzle } from "drizzle-orm/libsql/web";
import { withDeadline } from "../lib/deadline.ts";
import { Unavailable } from "../lib/errors.ts";

export interface DatabaseOptions {
  url: string;
  authToken?: string | undefined;
}

/** Below the two seconds within which a caller learns that a store is away. */
const TIMEOUT_MS = 1_500;

/** As a limit: no limit. Drizzle leaves out a negative one, and SQLite knows no offset without a limit. */
export const ALL_ROWS = Number.MAX_SAFE_INTEGER;

export type Database = ReturnType<typeof createDatabase>;

export function createDatabase({ url, authToken }: DatabaseOptions) {
  const client = createClient({
    url,
    ...(authToken !== undefined && { authToken }),
    // No queue in the client: it would run one request's query inside another request, and lose it when that one ends. (Zero
    // would mean the default of twenty.)
    concurrency: Number.POSITIVE_INFINITY,
    fetch: (request: Request) =>
      withDeadline(TIMEOUT_MS, async (signal) => {
        const response = await fetch(request, { signal });
        // Read here and now: the time limit is for the whole answer.
        return new Response(await response.arrayBuffer(), response);
      }),
  });
  return drizzle(client);
}

/** What the database says when it has too much to do, or no disk to do it on: that may pass. */
const PASSING_CODES = /^SQLITE_(BUSY|LOCKED|FULL|IOERR|CANTOPEN|NOMEM)/;

/** Awaits a query and tells a database that is away (`Unavailable`) from one that said no. */
export async function query<T>(query: PromiseLike<T>): Promise<T> {
  try {
    return await query;
  } catch (error) {
    const code = sqliteCode(error);
    if (code === undefined || PASSING_CODES.test(code)) throw new Unavailable("accounts database", error);
    throw error;
  }
}

export function isUniqueViolation(error: unknown): boolean {
  return sqliteCode(error)?.startsWith("SQLITE_CONSTRAINT") ?? false;
}

/** The database's own code for an error, somewhere down the chain of causes; none if it never answered. */
function sqliteCode(error: unknown): string | undefined {
  for (let cause = error; cause instanceof Error; cause = cause.cause) {
    if (cause instanceof LibsqlError && cause.code.startsWith("SQL")) return cause.code;
  }
  return undefined;
}
