import type { Client } from "@libsql/client/http";
import { UserError } from "../shared/cli.ts";

/**
 * A table of the accounts database that exists only during a restore. An interrupted restore leaves it behind, so that no service starts
 * on incomplete stores.
 */
export const RESTORE_IN_PROGRESS = "restore_unfinished";

/** Marks the stores as incomplete, until `markRestoreFinished`. */
export async function markRestoreStarted(client: Client): Promise<void> {
  await client.execute(`CREATE TABLE IF NOT EXISTS ${RESTORE_IN_PROGRESS} (started_at integer)`);
}

export async function markRestoreFinished(client: Client): Promise<void> {
  await client.execute(`DROP TABLE ${RESTORE_IN_PROGRESS}`);
}

/** Throws if a restore into these stores was interrupted. */
export async function rejectInterruptedRestore(client: Client): Promise<void> {
  const { rows } = await client.execute({
    sql: "SELECT 1 FROM sqlite_master WHERE name = ?",
    args: [RESTORE_IN_PROGRESS],
  });
  if (rows.length > 0)
    throw new UserError("A restore into these stores was interrupted. Run npm run restore again, with --replace.");
}
