import { waitUntil } from "cloudflare:workers";
import { and, asc, gt, inArray, lt, max } from "drizzle-orm";
import { describeError, log } from "../log.ts";
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

export interface AccountChangesOptions {
  /** How long the trail is kept. */
  keptMs: number;
}

/** Of the oldest entries, so many are looked at at once. */
const FORGOTTEN_AT_ONCE = 500;
const MAX_TOLD = 5_000;
const NOTHING: Changed = new Set<string>();

export function createAccountChanges(database: Database, { keptMs }: AccountChangesOptions): AccountChanges {
  const newest = async (): Promise<number> => {
    const [row] = await reach(database.select({ id: max(audit.id) }).from(audit));
    return row?.id ?? 0;
  };

  /** Entries are numbered in the order of time: a look at the first ones finds those that are too old. */
  const forgetOld = async (): Promise<void> => {
    const oldest = database.select({ id: audit.id }).from(audit).orderBy(asc(audit.id)).limit(FORGOTTEN_AT_ONCE);
    try {
      await database.delete(audit).where(and(inArray(audit.id, oldest), lt(audit.at, new Date(Date.now() - keptMs))));
    } catch (error) {
      // The next ones that come make up for it.
      log.warn("old entries of the audit trail not removed", { error: describeError(error) });
    }
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
      // Where entries come in, old ones go: the trail needs no clock of its own.
      if (rows.length > 0) waitUntil(forgetOld());
      if (rows.length === MAX_TOLD) return { mark: await newest(), changed: "everything" };
      return { mark: rows.at(-1)?.id ?? mark, changed: new Set(rows.map(({ object }) => object)) };
    },
  };
}
