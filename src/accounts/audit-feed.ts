import { and, asc, gt, max, notInArray } from "drizzle-orm";
import { emulatedJobOf, JOB_CHARACTERS } from "../schemas/agent.ts";
import { type Database, query } from "../storage/libsql.ts";
import { audit } from "./account-tables.ts";
import { CHANGES_NO_ACCOUNT } from "./audit.ts";

/**
 * Reports which accounts have changed. Every change of an account adds an entry to the audit trail in the same transaction, and ids grow
 * in the order of writing. A reader that has read the trail up to an id has therefore seen all changes until then. Commands are in the
 * trail as well, often a thousand at once. They change no account, so the feed skips them.
 */
export interface AuditFeed {
  /**
   * Returns the objects of all entries after a mark, and the new mark: the id of the newest entry. Without a mark, returns the new mark
   * only.
   */
  since(mark: number | undefined): Promise<{ mark: number; changed: ChangedObjects }>;
}

/** Objects as the audit trail names them, such as `user:<username>`. `everything` if there are too many to list. */
export type ChangedObjects = ReadonlySet<string> | "everything";

const MAX_OBJECTS = 5_000;
const NOTHING: ChangedObjects = new Set<string>();

/** @param onEntries called when there are new entries */
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
            .limit(MAX_OBJECTS),
          newest,
        ]),
      );
      const newMark = Math.max(mark, last?.id ?? 0);
      if (newMark > mark) onEntries();
      if (rows.length === MAX_OBJECTS) return { mark: newMark, changed: "everything" };
      return { mark: newMark, changed: new Set(rows.map(({ object }) => object)) };
    },
  };
}

const JOB_PREFIX = "job:";
/** Object of an entry for many agents whose labels one request has changed. */
export const LABELLED_AGENTS = "agents";

/**
 * Returns a test of whether the changes concern an account. One entry with the number of a job stands for all emulated agents of that
 * job: jobs create and delete them by the thousand.
 */
export function concernedBy(changed: ChangedObjects): (kind: "user" | "agent" | "app", name: string) => boolean {
  if (changed === "everything") return () => true;
  const jobs = new Set(
    [...changed]
      .filter((object) => object.startsWith(JOB_PREFIX))
      .map((object) => object.slice(JOB_PREFIX.length, JOB_PREFIX.length + JOB_CHARACTERS)),
  );
  return (kind, name) => {
    if (changed.has(`${kind}:${name}`)) return true;
    const job = jobs.size === 0 || kind !== "agent" ? undefined : emulatedJobOf(name);
    return job !== undefined && jobs.has(job);
  };
}
