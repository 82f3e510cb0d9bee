import { existsSync, readdirSync, rmSync, statSync } from "node:fs";
import { join } from "node:path";

/** One page of SQLite's: room for no table at all. */
const EMPTY_BYTES = 4_096;

/**
 * Removes what is left of Durable Objects that have deleted all they had: an empty file each, which workerd keeps for ever, one for
 * every job there was. Only for a time when no workerd runs, since an object that is at work keeps its file open.
 */
export function removeEmptyObjects(objectsDir: string): number {
  const namespaces = readdirSync(objectsDir, { withFileTypes: true }).filter((entry) => entry.isDirectory());
  const files = namespaces.flatMap(({ name }) =>
    readdirSync(join(objectsDir, name))
      .filter((file) => /^[0-9a-f]{64}\.sqlite$/.test(file))
      .map((file) => join(objectsDir, name, file)),
  );
  const ended = files.filter((file) => statSync(file).size <= EMPTY_BYTES && !existsSync(`${file}-wal`));
  for (const file of ended) rmSync(file);
  return ended.length;
}
