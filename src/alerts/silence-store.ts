import { desc, eq, gt, lte, sql } from "drizzle-orm";
import * as z from "zod";
import { type AuditActor, actorText, auditIfChanged } from "../accounts/audit.ts";
import { Conflict } from "../lib/errors.ts";
import { MAX_SILENCES } from "../schemas/alerts/alert.ts";
import { type Database, query } from "../storage/libsql.ts";
import { silences } from "./alert-tables.ts";

const SilenceRow = z.object({
  id: z.string(),
  selector: z.string(),
  reason: z.string(),
  authorId: z.string(),
  author: z.string(),
  createdAt: z.date(),
  until: z.date(),
});
export type SilenceRow = z.output<typeof SilenceRow>;
export type NewSilence = Pick<SilenceRow, "selector" | "reason" | "until">;

export interface SilenceStore {
  find(id: string): Promise<SilenceRow | undefined>;
  /** Returns the silences that have not ended, the newest first. */
  active(nowMs: number): Promise<SilenceRow[]>;
  /** Throws `Conflict` if there are too many. */
  insert(silence: NewSilence, by: AuditActor & { id: string }): Promise<SilenceRow>;
  delete(silence: SilenceRow, by: AuditActor): Promise<void>;
}

/** The audit trail keeps what ended silences were. */
const objectOf = (id: string): string => `silence:${id}`;

export function createSilenceStore(database: Database): SilenceStore {
  return {
    async find(id) {
      const [row] = await query(database.select().from(silences).where(eq(silences.id, id)));
      return row === undefined ? undefined : SilenceRow.parse(row);
    },

    async active(nowMs) {
      const isActive = gt(silences.until, new Date(nowMs));
      const newest = desc(silences.createdAt);
      const rows = await query(database.select().from(silences).where(isActive).orderBy(newest, desc(silences.id)));
      return z.array(SilenceRow).parse(rows);
    },

    async insert({ selector, reason, until }, by) {
      const createdAt = new Date();
      const row = {
        id: crypto.randomUUID(),
        selector,
        reason,
        authorId: by.id,
        author: actorText(by),
        createdAt,
        until,
      };
      const [, inserted] = await query(
        database.batch([
          database.delete(silences).where(lte(silences.until, createdAt)),
          database.run(
            sql`insert into ${silences} (id, selector, reason, author_id, author, created_at, until)
                select ${row.id}, ${selector}, ${reason}, ${row.authorId}, ${row.author}, ${createdAt.getTime()}, ${until.getTime()}
                where (select count(*) from ${silences}) < ${MAX_SILENCES}`,
          ),
          auditIfChanged(database, by, "create", objectOf(row.id), JSON.stringify({ selector, reason, until })),
        ]),
      );
      if (inserted.rowsAffected === 0) {
        throw new Conflict(`There are ${MAX_SILENCES.toLocaleString("en-US")} silences, which is the limit`);
      }
      return row;
    },

    async delete({ id, selector }, by) {
      await query(
        database.batch([
          database.delete(silences).where(eq(silences.id, id)),
          auditIfChanged(database, by, "delete", objectOf(id), JSON.stringify({ selector })),
        ]),
      );
    },
  };
}
