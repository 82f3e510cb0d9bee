import type { Client } from "@libsql/client/http";
import { UserError } from "../../../src/programs/shared/cli.ts";

/** A table that is there while a restore is under way. One that was cut off leaves it behind, and nobody takes its half for a whole. */
export const UNFINISHED = "restore_unfinished";

export async function isUnfinished(client: Client): Promise<boolean> {
  const { rows } = await client.execute({ sql: "SELECT 1 FROM sqlite_master WHERE name = ?", args: [UNFINISHED] });
  return rows.length > 0;
}

export async function refuseUnfinishedRestore(client: Client): Promise<void> {
  if (await isUnfinished(client))
    throw new UserError("A restore into these stores was cut off. Run it again, with --replace.");
}
