import { sql } from "drizzle-orm";
import { type Database, query } from "../storage/libsql.ts";
import { attempts } from "./account-tables.ts";

const WRITE_EVERY_MS = 5_000;
const EXPIRES_AFTER_MS = 60_000;
const KEY = "readyz";

/** Asks whether the accounts database can be read and, now and then, whether it can be written to: a full disk shows only there. */
export function createDatabaseProbe(database: Database, now: () => number = Date.now): () => Promise<void> {
  let writtenMs = Number.NEGATIVE_INFINITY;
  return async () => {
    const nowMs = now();
    if (nowMs - writtenMs < WRITE_EVERY_MS) {
      await query(database.run(sql`select 1`));
      return;
    }
    const expiresAt = new Date(nowMs + EXPIRES_AFTER_MS);
    const row = database.insert(attempts).values({ key: KEY, count: 0, expiresAt });
    await query(row.onConflictDoUpdate({ target: attempts.key, set: { expiresAt } }));
    writtenMs = nowMs;
  };
}
