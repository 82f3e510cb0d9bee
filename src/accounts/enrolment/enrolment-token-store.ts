import { and, desc, eq, isNotNull, isNull, sql } from "drizzle-orm";
import * as z from "zod";
import { Conflict } from "../../lib/errors.ts";
import { type Database, query } from "../../storage/libsql.ts";
import { enrolmentTokens, enrolmentUses } from "../account-tables.ts";
import { type AuditActor, actorText, auditIfChanged } from "../audit.ts";

const EnrolmentTokenRow = z.object({
  id: z.string(),
  tokenHash: z.string(),
  prefix: z.string(),
  description: z.string(),
  labels: z.record(z.string(), z.string()),
  maxUses: z.int().nullable(),
  uses: z.int(),
  expiresAt: z.date().nullable(),
  createdBy: z.string(),
  createdAt: z.date(),
  revokedAt: z.date().nullable(),
});
export type EnrolmentTokenRow = z.output<typeof EnrolmentTokenRow>;

export type NewEnrolmentToken = Pick<
  EnrolmentTokenRow,
  "tokenHash" | "prefix" | "description" | "labels" | "maxUses" | "expiresAt"
>;

export interface EnrolmentTokenStore {
  find(id: string): Promise<EnrolmentTokenRow | undefined>;
  /** Returns the token with this hash, unless it was revoked. */
  findValid(tokenHash: string): Promise<{ id: string; prefix: string } | undefined>;
  /** Returns the newest first. */
  list(): Promise<EnrolmentTokenRow[]>;
  /** Throws `Conflict` if there are too many tokens. */
  insert(token: NewEnrolmentToken, by: AuditActor): Promise<EnrolmentTokenRow>;
  /** Has no effect on a token that was revoked before. */
  revoke(token: EnrolmentTokenRow, by: AuditActor): Promise<void>;
  /** Returns how many agents a token has registered. */
  countUses(tokenHash: string): Promise<number>;
}

/** Tokens that are not revoked, and revoked ones that stay in the list. */
const MAX_TOKENS = 1_000;
const MAX_REVOKED = 1_000;

const COLUMNS = {
  id: enrolmentTokens.id,
  tokenHash: enrolmentTokens.tokenHash,
  prefix: enrolmentTokens.prefix,
  description: enrolmentTokens.description,
  labels: enrolmentTokens.labels,
  maxUses: enrolmentTokens.maxUses,
  uses: sql<number>`coalesce(${enrolmentUses.uses}, 0)`,
  expiresAt: enrolmentTokens.expiresAt,
  createdBy: enrolmentTokens.createdBy,
  createdAt: enrolmentTokens.createdAt,
  revokedAt: enrolmentTokens.revokedAt,
};

const objectOf = (prefix: string): string => `enrolment_token:${prefix}`;

export function createEnrolmentTokenStore(database: Database): EnrolmentTokenStore {
  const select = () =>
    database
      .select(COLUMNS)
      .from(enrolmentTokens)
      .leftJoin(enrolmentUses, eq(enrolmentUses.tokenHash, enrolmentTokens.tokenHash));

  return {
    async find(id) {
      const [row] = await query(select().where(eq(enrolmentTokens.id, id)));
      return row === undefined ? undefined : EnrolmentTokenRow.parse(row);
    },

    async findValid(tokenHash) {
      const [row] = await query(
        database
          .select({ id: enrolmentTokens.id, prefix: enrolmentTokens.prefix })
          .from(enrolmentTokens)
          .where(and(eq(enrolmentTokens.tokenHash, tokenHash), isNull(enrolmentTokens.revokedAt))),
      );
      return row;
    },

    async list() {
      const rows = await query(select().orderBy(desc(enrolmentTokens.createdAt), desc(enrolmentTokens.id)));
      return z.array(EnrolmentTokenRow).parse(rows);
    },

    async insert({ tokenHash, prefix, description, labels, maxUses, expiresAt }, by) {
      const [id, createdAt, createdBy] = [crypto.randomUUID(), new Date(), actorText(by)];
      const detail = { description, labels, max_uses: maxUses, expires_at: expiresAt };
      const [inserted] = await query(
        database.batch([
          database.run(
            sql`insert into ${enrolmentTokens}
                  (id, token_hash, prefix, description, labels, max_uses, expires_at, created_by, created_at)
                select ${id}, ${tokenHash}, ${prefix}, ${description}, ${JSON.stringify(labels)}, ${maxUses},
                  ${expiresAt?.getTime() ?? null}, ${createdBy}, ${createdAt.getTime()}
                where (select count(*) from ${enrolmentTokens} where revoked_at is null) < ${MAX_TOKENS}`,
          ),
          auditIfChanged(database, by, "create", objectOf(prefix), JSON.stringify(detail)),
        ]),
      );
      if (inserted.rowsAffected === 0) {
        throw new Conflict(
          `There are ${MAX_TOKENS.toLocaleString("en-US")} enrolment tokens. Revoke some of them first`,
        );
      }
      const row = { id, tokenHash, prefix, description, labels, maxUses, expiresAt, createdBy, createdAt };
      return { ...row, uses: 0, revokedAt: null };
    },

    async revoke({ id, prefix }, by) {
      const revoked = database
        .select({ id: enrolmentTokens.id })
        .from(enrolmentTokens)
        .where(isNotNull(enrolmentTokens.revokedAt))
        .orderBy(desc(enrolmentTokens.revokedAt))
        .limit(MAX_REVOKED);
      await query(
        database.batch([
          database
            .update(enrolmentTokens)
            .set({ revokedAt: new Date() })
            .where(and(eq(enrolmentTokens.id, id), isNull(enrolmentTokens.revokedAt))),
          auditIfChanged(database, by, "revoke", objectOf(prefix)),
          database
            .delete(enrolmentTokens)
            .where(and(isNotNull(enrolmentTokens.revokedAt), sql`${enrolmentTokens.id} not in ${revoked}`)),
        ]),
      );
    },

    async countUses(tokenHash) {
      const [row] = await query(database.select().from(enrolmentUses).where(eq(enrolmentUses.tokenHash, tokenHash)));
      return row?.uses ?? 0;
    },
  };
}
