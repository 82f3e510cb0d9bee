import { asc, eq, sql } from "drizzle-orm";
import * as z from "zod";
import { Duplicate, NotFound } from "../lib/errors.ts";
import { Permissions } from "../schemas/app.ts";
import type { Page } from "../schemas/primitives.ts";
import { ALL_ROWS, type Database, isUniqueViolation, query } from "../storage/libsql.ts";
import { apps, type StoredGrant, StoredGrants } from "./account-tables.ts";
import { type AuditActor, auditIfChanged } from "./audit.ts";
import { deleteOwner, type OwnedJob, type OwnedJobs } from "./owned-jobs.ts";

const AppRow = z.object({
  id: z.string(),
  appName: z.string(),
  sealedApiKey: z.string(),
  permissions: Permissions,
  version: z.int(),
  grants: StoredGrants,
});
export type AppRow = z.output<typeof AppRow>;

export type NewApp = Omit<AppRow, "version" | "grants">;
export type AppChanges = {
  sealedApiKey?: string | undefined;
  permissions?: Permissions | undefined;
  grants?: StoredGrant[] | null | undefined;
};

export interface AppStore {
  find(appName: string): Promise<AppRow | undefined>;
  /** Ordered by name. */
  list(page: Page): Promise<AppRow[]>;
  insert(app: NewApp, by: AuditActor): Promise<AppRow>;
  /** Invalidates the app's tokens. */
  update(app: AppRow, changes: AppChanges, by: AuditActor): Promise<AppRow>;
  /** Deletes the app and ends its jobs. Returns those jobs. */
  delete(appName: string, by: AuditActor, endJobs: OwnedJobs["end"]): Promise<OwnedJob[]>;
}

const objectOf = (appName: string): string => `app:${appName}`;

export function createAppStore(database: Database): AppStore {
  return {
    async find(appName) {
      const rows = await query(database.select().from(apps).where(eq(apps.appName, appName)));
      return rows[0] === undefined ? undefined : AppRow.parse(rows[0]);
    },

    async list({ limit, offset }) {
      const rows = await query(
        database
          .select()
          .from(apps)
          .orderBy(asc(apps.appName))
          .limit(limit ?? ALL_ROWS)
          .offset(offset),
      );
      return z.array(AppRow).parse(rows);
    },

    async insert(app, by) {
      try {
        const [rows] = await query(
          database.batch([
            database
              .insert(apps)
              .values({ createdAt: new Date(), version: Date.now(), ...app })
              .returning(),
            auditIfChanged(database, by, "create", objectOf(app.appName)),
          ]),
        );
        return AppRow.parse(rows[0]);
      } catch (error) {
        throw isUniqueViolation(error) ? new Duplicate("Third-party app") : error;
      }
    },

    async update(app, { sealedApiKey, permissions, grants }, by) {
      const actions = [
        sealedApiKey && "change api key",
        permissions && "change permissions",
        grants !== undefined && "change grants",
      ].filter(Boolean);
      const detail = grants === undefined ? null : JSON.stringify({ grants });
      const [rows] = await query(
        database.batch([
          database
            .update(apps)
            .set({
              ...(sealedApiKey !== undefined && { sealedApiKey }),
              ...(permissions !== undefined && { permissions }),
              ...(grants !== undefined && { grants }),
              version: sql`${apps.version} + 1`,
            })
            .where(eq(apps.id, app.id))
            .returning(),
          auditIfChanged(database, by, actions.join(" and "), objectOf(app.appName), detail),
        ]),
      );
      if (rows[0] === undefined) throw new NotFound("Third-party app");
      return AppRow.parse(rows[0]);
    },

    async delete(appName, by, endJobs) {
      const deleted = sql`(select id from apps where app_name = ${appName})`;
      const ended = await deleteOwner(
        database,
        endJobs(deleted),
        database.delete(apps).where(eq(apps.appName, appName)).returning({ id: apps.id }),
        auditIfChanged(database, by, "delete", objectOf(appName)),
      );
      if (ended === undefined) throw new NotFound("Third-party app");
      return ended;
    },
  };
}
