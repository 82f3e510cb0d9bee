import { and, asc, eq, gt, lt, sql } from "drizzle-orm";
import * as z from "zod";
import { ROLES, type Role } from "../auth/roles.ts";
import { Conflict, Duplicate, NotFound } from "../lib/errors.ts";
import type { Page } from "../schemas/primitives.ts";
import { ALL_ROWS, type Database, isUniqueViolation, query } from "../storage/libsql.ts";
import { resetTokens, type StoredGrant, StoredGrants, users } from "./account-tables.ts";
import { type AuditActor, auditIfChanged } from "./audit.ts";
import { deleteOwner, type OwnedJob, type OwnedJobs } from "./owned-jobs.ts";

const User = z.object({
  id: z.string(),
  username: z.string(),
  passwordHash: z.string(),
  roles: z.array(z.enum(ROLES)),
  version: z.int(),
  grants: StoredGrants,
});
export type User = z.output<typeof User>;

export type NewUser = Pick<User, "username" | "passwordHash" | "roles"> & { grants?: StoredGrant[] | null };
export type UserChanges = {
  passwordHash?: string | undefined;
  roles?: Role[] | undefined;
  grants?: StoredGrant[] | null | undefined;
};

export interface UserStore {
  find(username: string): Promise<User | undefined>;
  list(page: Page): Promise<User[]>;
  /** Throws `Duplicate` if the name is taken. The unique index decides: of concurrent requests exactly one succeeds. */
  insert(user: NewUser, by: AuditActor): Promise<void>;
  /** Like `insert`, but only if there are no users. Returns whether it inserted the user. */
  insertFirst(user: NewUser, by: AuditActor): Promise<boolean>;
  /** Invalidates the user's tokens. Throws `Conflict` if no administrator would remain. */
  update(username: string, changes: UserChanges, by: AuditActor): Promise<User>;
  /** Deletes the user and ends its jobs. Returns those jobs. Throws `Conflict` if no administrator would remain. */
  delete(username: string, by: AuditActor, endJobs: OwnedJobs["end"]): Promise<OwnedJob[]>;
  administrators(): Promise<string[]>;
  addResetToken(tokenHash: string, user: User, expiresAt: Date, by: AuditActor): Promise<void>;
  hasResetToken(tokenHash: string): Promise<boolean>;
  /** Sets a new password and deletes the user's reset tokens. Returns the user's id, or undefined if the token was not valid. */
  redeemResetToken(tokenHash: string, passwordHash: string, by: AuditActor): Promise<string | undefined>;
}

const COLUMNS = {
  id: users.id,
  username: users.username,
  passwordHash: users.passwordHash,
  roles: users.roles,
  version: users.version,
  grants: users.grants,
};

const objectOf = (username: string): string => `user:${username}`;

export function createUserStore(database: Database): UserStore {
  const find: UserStore["find"] = async (username) => {
    const rows = await query(database.select(COLUMNS).from(users).where(eq(users.username, username)));
    return rows[0] === undefined ? undefined : User.parse(rows[0]);
  };
  /** Whether an administrator remains without this user. */
  const leavesAdministrator = sql`(not ${users.isAdmin} or exists (
    select 1 from users as others where others.is_admin and others.username <> ${users.username}))`;
  /** Returns why a statement for this user changed no row. */
  const rejectionReason = async (username: string): Promise<Error> =>
    (await find(username)) === undefined
      ? new NotFound("User")
      : new Conflict("The last administrator cannot be removed");
  const row = (user: NewUser) => ({ id: crypto.randomUUID(), createdAt: new Date(), version: Date.now(), ...user });

  return {
    find,

    async list({ limit, offset }) {
      const rows = await query(
        database
          .select(COLUMNS)
          .from(users)
          .orderBy(asc(users.username))
          .limit(limit ?? ALL_ROWS)
          .offset(offset),
      );
      return z.array(User).parse(rows);
    },

    async insert(user, by) {
      try {
        await query(
          database.batch([
            database.insert(users).values(row(user)),
            auditIfChanged(database, by, "create", objectOf(user.username)),
          ]),
        );
      } catch (error) {
        throw isUniqueViolation(error) ? new Duplicate("User") : error;
      }
    },

    async insertFirst(user, by) {
      const { id, username, passwordHash, roles, version, createdAt } = row(user);
      const [inserted] = await query(
        database.batch([
          database.run(
            sql`insert into users (id, username, password_hash, roles, version, created_at)
                select ${id}, ${username}, ${passwordHash}, ${JSON.stringify(roles)}, ${version}, ${createdAt.getTime()}
                where not exists (select 1 from users)`,
          ),
          auditIfChanged(database, by, "create", objectOf(username)),
        ]),
      );
      return inserted.rowsAffected > 0;
    },

    async update(username, { passwordHash, roles, grants }, by) {
      const actions = [
        passwordHash && "change password",
        roles && "change roles",
        grants !== undefined && "change grants",
      ].filter(Boolean);
      const detail = grants === undefined ? null : JSON.stringify({ grants });
      const staysAdministrator = roles === undefined || roles.includes("admin");
      const [rows] = await query(
        database.batch([
          database
            .update(users)
            .set({
              ...(passwordHash !== undefined && { passwordHash }),
              ...(roles !== undefined && { roles }),
              ...(grants !== undefined && { grants }),
              version: sql`${users.version} + 1`,
            })
            .where(and(eq(users.username, username), staysAdministrator ? undefined : leavesAdministrator))
            .returning(COLUMNS),
          auditIfChanged(database, by, actions.join(" and "), objectOf(username), detail),
          // A reset link that was sent before must not replace the new password. Deletes nothing if the password does not change.
          database
            .delete(resetTokens)
            .where(
              passwordHash === undefined
                ? sql`false`
                : sql`user_id = (select id from users where username = ${username})`,
            ),
        ]),
      );
      if (rows[0] === undefined) throw await rejectionReason(username);
      return User.parse(rows[0]);
    },

    async delete(username, by, endJobs) {
      const deleted = sql`(select id from users where username = ${username} and ${leavesAdministrator})`;
      const ended = await deleteOwner(
        database,
        endJobs(deleted),
        database
          .delete(users)
          .where(and(eq(users.username, username), leavesAdministrator))
          .returning({ id: users.id }),
        auditIfChanged(database, by, "delete", objectOf(username)),
      );
      if (ended === undefined) throw await rejectionReason(username);
      return ended;
    },

    async administrators() {
      const rows = await query(database.select({ username: users.username }).from(users).where(sql`is_admin`));
      return rows.map(({ username }) => username);
    },

    async addResetToken(tokenHash, { id, username }, expiresAt, by) {
      await query(
        database.batch([
          database.delete(resetTokens).where(lt(resetTokens.expiresAt, new Date())),
          database.insert(resetTokens).values({ tokenHash, userId: id, expiresAt }),
          auditIfChanged(database, by, "request password reset", objectOf(username)),
        ]),
      );
    },

    async hasResetToken(tokenHash) {
      const rows = await query(
        database
          .select({ userId: resetTokens.userId })
          .from(resetTokens)
          .where(and(eq(resetTokens.tokenHash, tokenHash), gt(resetTokens.expiresAt, new Date()))),
      );
      return rows.length > 0;
    },

    async redeemResetToken(tokenHash, passwordHash, by) {
      // Each statement finds the token again, in one transaction: of two concurrent requests with one token, one succeeds.
      const owner = sql`(select user_id from reset_tokens where token_hash = ${tokenHash} and expires_at > ${Date.now()})`;
      const name = sql`(select 'user:' || username from users where id = ${owner})`;
      const [changed] = await query(
        database.batch([
          database
            .update(users)
            .set({ passwordHash, version: sql`${users.version} + 1` })
            .where(sql`${users.id} = ${owner}`)
            .returning({ id: users.id }),
          auditIfChanged(database, by, "reset password", name),
          database.delete(resetTokens).where(sql`${resetTokens.userId} = ${owner}`),
        ]),
      );
      return changed[0]?.id;
    },
  };
}
