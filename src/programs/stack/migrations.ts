import { fileURLToPath } from "node:url";
import { createClient as createLibsql } from "@libsql/client/http";
import { drizzle } from "drizzle-orm/libsql";
import { migrate } from "drizzle-orm/libsql/migrator";
import type { StoresConfig } from "../../env.ts";
import { loadGazetteer } from "../gazetteer/load.ts";
import { rejectInterruptedRestore } from "./restore-mark.ts";

export const ACCOUNTS_FOLDER = fileURLToPath(new URL("../../../drizzle", import.meta.url));

export async function migrateAccounts({ LIBSQL_URL: url, LIBSQL_AUTH_TOKEN: authToken }: StoresConfig): Promise<void> {
  const client = createLibsql({ url, ...(authToken !== undefined && { authToken }) });
  try {
    await rejectInterruptedRestore(client);
    await migrate(drizzle(client), { migrationsFolder: ACCOUNTS_FOLDER });
  } finally {
    client.close();
  }
}

/** Loads the names of the world's towns, unless they are there. An abort stops it between two statements; the next call starts over. */
export async function fillGazetteer(
  { LIBSQL_URL: url, LIBSQL_AUTH_TOKEN: authToken }: StoresConfig,
  signal?: AbortSignal,
): Promise<void> {
  const client = createLibsql({ url, ...(authToken !== undefined && { authToken }) });
  try {
    await loadGazetteer(client, Date.now(), signal);
  } finally {
    client.close();
  }
}
