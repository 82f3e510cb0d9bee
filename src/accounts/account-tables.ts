import { sql } from "drizzle-orm";
import { index, integer, sqliteTable, text } from "drizzle-orm/sqlite-core";
import type { Role } from "../auth/roles.ts";

/** Tables of the accounts database. `npx drizzle-kit generate` turns a change here into a migration in `drizzle/`. */

const timestamp = (name: string) => integer(name, { mode: "timestamp_ms" });

/**
 * Incremented by every change that must invalidate earlier tokens, such as a new password or other roles. It starts at the time of
 * creation: tokens of a deleted account are not valid for a later account of the same name.
 */
const version = () => integer("version").notNull();

export const users = sqliteTable(
  "users",
  {
    id: text("id").primaryKey(),
    /** E-mail address, trimmed and in lower case. */
    username: text("username").notNull().unique(),
    passwordHash: text("password_hash").notNull(),
    roles: text("roles", { mode: "json" }).$type<Role[]>().notNull(),
    isAdmin: integer("is_admin", { mode: "boolean" }).generatedAlwaysAs(sql`instr(roles, '"admin"') > 0`),
    version: version(),
    createdAt: timestamp("created_at").notNull(),
  },
  (table) => [index("users_admins").on(table.username).where(sql`is_admin`)],
);

export const agents = sqliteTable("agents", {
  id: text("id").primaryKey(),
  apId: text("ap_id").notNull().unique(),
  /** `argon2id` for a password that a person chose, `hmac` for a generated one. A chosen password never uses the fast hash. */
  credentialKind: text("credential_kind", { enum: ["argon2id", "hmac"] }).notNull(),
  credential: text("credential").notNull(),
  configuration: text("configuration", { mode: "json" }).$type<Record<string, unknown>>().notNull(),
  /** True from the first login on. */
  onboard: integer("onboard", { mode: "boolean" }).notNull().default(false),
  version: version(),
  createdAt: timestamp("created_at").notNull(),
});

export const apps = sqliteTable("apps", {
  id: text("id").primaryKey(),
  appName: text("app_name").notNull().unique(),
  sealedApiKey: text("sealed_api_key").notNull(),
  permissions: text("permissions", { mode: "json" }).$type<Record<string, unknown>>().notNull(),
  version: version(),
  createdAt: timestamp("created_at").notNull(),
});

export const resetTokens = sqliteTable(
  "reset_tokens",
  {
    tokenHash: text("token_hash").primaryKey(),
    userId: text("user_id")
      .notNull()
      .references(() => users.id, { onDelete: "cascade" }),
    expiresAt: timestamp("expires_at").notNull(),
  },
  (table) => [index("reset_tokens_user").on(table.userId), index("reset_tokens_expiry").on(table.expiresAt)],
);

/** Number of access points that each enrolment token has registered. */
export const enrolmentUses = sqliteTable("enrolment_uses", {
  /** SHA-256 in hexadecimal digits. The token itself is only in the settings. */
  tokenHash: text("token_hash").primaryKey(),
  uses: integer("uses").notNull(),
});

/** Number of attempts within the current minute, by the key of the limit. */
export const attempts = sqliteTable(
  "attempts",
  {
    key: text("key").primaryKey(),
    count: integer("count").notNull(),
    expiresAt: timestamp("expires_at").notNull(),
  },
  (table) => [index("attempts_expiry").on(table.expiresAt)],
);

/** Actions and their actors. Stores names, not references: entries outlive the objects that they name. */
export const audit = sqliteTable(
  "audit",
  {
    id: integer("id").primaryKey({ autoIncrement: true }),
    at: timestamp("at").notNull(),
    requestId: text("request_id").notNull(),
    actor: text("actor").notNull(),
    action: text("action").notNull(),
    object: text("object").notNull(),
    /** Details of the action, such as the text of a command and its outcome. */
    detail: text("detail", { mode: "json" }).$type<Record<string, unknown>>(),
  },
  (table) => [index("audit_actor").on(table.actor, table.id), index("audit_object").on(table.object, table.id)],
);
