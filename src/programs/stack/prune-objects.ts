import { existsSync, readdirSync, rmSync, statSync } from "node:fs";
import { join } from "node:path";

/** One page of SQLite, too small for any table. */
const EMPTY_BYTES = 4_096;

/**
 * Deletes the files of Durable Objects that have deleted all their data, and returns how many. workerd keeps an empty file for each of
 * them forever, one per job. Must not be called while workerd runs, because an active object keeps its file open.
 */
export function removeEmptyObjects(objectsDir: string): number {
  const namespaces = readdirSync(objectsDir, { withFileTypes: true }).filter((entry) => entry.isDirectory());
  const files = namespaces.flatMap(({ name }) =>
    readdirSync(join(objectsDir, name))
      .filter((file) => /^[0-9a-f]{64}\.sqlite$/.test(file))
      .map((file) => join(objectsDir, name, file)),
  );
  const empty = files.filter((file) => statSync(file).size <= EMPTY_BYTES && !existsSync(`${file}-wal`));
  for (const file of empty) rmSync(file);
  return empty.length;
}
