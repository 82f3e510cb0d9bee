import { and, asc, gt, max, notInArray } from "drizzle-orm";
import { type Database, query } from "../storage/libsql.ts";
import { audit } from "./account-tables.ts";
import { CHANGES_NO_ACCOUNT } from "./audit.ts";

/**
 * Which accounts have changed. Every change of an account is in the audit trail, written together with it and numbered in the order of
 * writing: a reader of the trail up to a number knows all changes until then. Commands are in the trail as well, often a thousand at
 * once. They change no account and are left out.
 */
export interface AuditFeed {
  /** What changed after a mark, and the mark up to which everything is known now; without a mark, just that. */
  since(mark: number | undefined): Promise<{ mark: number; changed: Changed }>;
}

/** Names of objects of the audit trail; `everything` where they are too many to tell. */
export type Changed = ReadonlySet<string> | "everything";

const MAX_TOLD = 5_000;
const NOTHING: Changed = new Set<string>();

/** `onEntries` is called whenever there are new entries. */
export function createAuditFeed(database: Database, onEntries: () => void = () => {}): AuditFeed {
  const newest = database.select({ id: max(audit.id) }).from(audit);

  return {
    async since(mark) {
      if (mark === undefined) return { mark: (await query(newest))[0]?.id ?? 0, changed: NOTHING };
      const [rows, [last]] = await query(
        database.batch([
          database
            .select({ object: audit.object })
            .from(audit)
            .where(and(gt(audit.id, mark), notInArray(audit.action, CHANGES_NO_ACCOUNT)))
            .orderBy(asc(audit.id))
            .limit(MAX_TOLD),
          newest,
        ]),
      );
      const newMark = Math.max(mark, last?.id ?? 0);
      if (newMark > mark) onEntries();
      if (rows.length === MAX_TOLD) return { mark: newMark, changed: "everything" };
      return { mark: newMark, changed: new Set(rows.map(({ object }) => object)) };
    },
  };
}
