import { sql } from "drizzle-orm";
import { type Database, query } from "../storage/libsql.ts";
import { attempts } from "./account-tables.ts";

const WRITE_INTERVAL_MS = 5_000;
const EXPIRES_AFTER_MS = 60_000;
const KEY = "readyz";

/** Returns a check that reads from the accounts database and regularly also writes to it: only a write detects a full disk. */
export function createDatabaseProbe(database: Database, now: () => number = Date.now): () => Promise<void> {
  let writtenMs = Number.NEGATIVE_INFINITY;
  return async () => {
    const nowMs = now();
    if (nowMs - writtenMs < WRITE_INTERVAL_MS) {
      await query(database.run(sql`select 1`));
      return;
    }
    const expiresAt = new Date(nowMs + EXPIRES_AFTER_MS);
    const row = database.insert(attempts).values({ key: KEY, count: 0, expiresAt });
    await query(row.onConflictDoUpdate({ target: attempts.key, set: { expiresAt } }));
    writtenMs = nowMs;
  };
}
