import type { Client } from "@libsql/client/http";
import { type GazetteerRow, gazetteerRows } from "./rows.ts";

/** Raise this when the package, or the selection of its rows, changes. */
const EDITION = 1;
/** The database accepts no other write during a statement. */
const ROWS_PER_STATEMENT = 10_000;

/**
 * Loads the towns into the database, unless this edition is already there. Returns how many rows it wrote. Every statement is idempotent:
 * an interrupted load starts over, and two concurrent loads do no harm.
 */
export async function loadGazetteer(client: Client, nowMs: number, signal?: AbortSignal): Promise<number> {
  const loaded = await client.execute({ sql: "SELECT 1 FROM gazetteer_editions WHERE edition = ?", args: [EDITION] });
  if (loaded.rows.length > 0) return 0;
  const rows = gazetteerRows();
  for (let from = 0; from < rows.length; from += ROWS_PER_STATEMENT) {
    signal?.throwIfAborted();
    const batch = rows.slice(from, from + ROWS_PER_STATEMENT).map(toArray);
    await client.execute({ sql: INSERT, args: [EDITION, JSON.stringify(batch)] });
  }
  // The previous edition stays until this one is complete, so every town can be found during the load.
  await client.batch(
    [
      { sql: "DELETE FROM gazetteer WHERE edition <> ?", args: [EDITION] },
      { sql: "DELETE FROM gazetteer_editions", args: [] },
      { sql: "INSERT INTO gazetteer_editions (edition, loaded_at) VALUES (?, ?)", args: [EDITION, nowMs] },
    ],
    "write",
  );
  return rows.length;
}

/** Takes all rows as one JSON argument, because the number of arguments of a statement is limited. */
const INSERT = `
  INSERT OR REPLACE INTO gazetteer (edition, key, weight, place_id, name, country, latitude, longitude)
  SELECT ?1, value ->> 0, value ->> 1, value ->> 2, value ->> 3, value ->> 4, value ->> 5, value ->> 6 FROM json_each(?2)`;

const toArray = ({ key, weight, placeId, name, country, latitude, longitude }: GazetteerRow) => [
  key,
  weight,
  placeId,
  name,
  country,
  latitude,
  longitude,
];
