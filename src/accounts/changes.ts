import { asc, gt, max } from "drizzle-orm";
import { type Database, reach } from "./database.ts";
import { audit } from "./tables.ts";

/**
 * Which accounts have changed. Every change of an account is in the audit trail, written together with it and numbered in the order of
 * writing; so whoever has read it up to a number knows all that changed until then.
 */
export interface AccountChanges {
  /** What changed after a mark, and the mark up to which everything is known now; without a mark, just that. */
  since(mark: number | undefined): Promise<{ mark: number; changed: Changed }>;
}

/** Names of objects of the audit trail; `everything` where they are too many to tell. */
export type Changed = ReadonlySet<string> | "everything";

const MAX_TOLD = 5_000;
const NOTHING: Changed = new Set<string>();

/** `onNews` is called whenever there are new entries. */
export function createAccountChanges(database: Database, onNews: () => void = () => {}): AccountChanges {
  const newest = async (): Promise<number> => {
    const [row] = await reach(database.select({ id: max(audit.id) }).from(audit));
    return row?.id ?? 0;
  };

  return {
    async since(mark) {
      if (mark === undefined) return { mark: await newest(), changed: NOTHING };
      const rows = await reach(
        database
          .select({ id: audit.id, object: audit.object })
          .from(audit)
          .where(gt(audit.id, mark))
          .orderBy(asc(audit.id))
          .limit(MAX_TOLD),
      );
      if (rows.length > 0) onNews();
      if (rows.length === MAX_TOLD) return { mark: await newest(), changed: "everything" };
      return { mark: rows.at(-1)?.id ?? mark, changed: new Set(rows.map(({ object }) => object)) };
    },
  };
}
