import type { Client } from "@libsql/client/http";
import { type GazetteerRow, gazetteerRows } from "./rows.ts";

/** To be raised with the package, or with what is taken from it. */
const EDITION = 1;
/** In one statement; the database writes nothing else in the meantime. */
const ROWS_PER_STATEMENT = 10_000;

/**
 * Puts the towns into the database, if this edition of them is not there yet. Each part is a transaction, and one that is
 * repeated changes nothing: an interrupted load starts over, and two at once do no harm. Answers how many rows were written.
 */
export async function loadGazetteer(client: Client, nowMs: number, signal?: AbortSignal): Promise<number> {
  const known = await client.execute({ sql: "SELECT 1 FROM gazetteer_editions WHERE edition = ?", args: [EDITION] });
  if (known.rows.length > 0) return 0;
  const rows = gazetteerRows();
  for (let from = 0; from < rows.length; from += ROWS_PER_STATEMENT) {
    signal?.throwIfAborted();
    const some = rows.slice(from, from + ROWS_PER_STATEMENT).map(toArray);
    await client.execute({ sql: INSERT, args: [EDITION, JSON.stringify(some)] });
  }
  // Names of the edition before stay until all of this one are there: nobody misses a town in between.
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

/** All rows in one argument, which the database takes apart: there is a limit to how many arguments a statement has. */
const INSERT = `
  INSERT OR REPLACE INTO gazetteer (edition, key, weight, place_id, name, country, latitude, longitude)
  SELECT ?1, value ->> 0, value ->> 1, value ->> 2, value ->> 3, value ->> 4, value ->> 5, value ->> 6 FROM json_each(?2)`;

const toArray = ({ key, weight, placeId, name, country, latitude, longitude }: GazetteerRow) => [
  ...[key, weight, placeId, name, country, latitude, longitude],
];
