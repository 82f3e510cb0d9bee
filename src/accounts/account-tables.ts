import { sql } from "drizzle-orm";
import { index, integer, primaryKey, sqliteTable, text } from "drizzle-orm/sqlite-core";
import * as z from "zod";
import { GRANT_ROLES } from "../auth/agent-scope.ts";
import type { Role } from "../auth/roles.ts";
import type { Labels } from "../lib/selectors.ts";

/** Tables of the accounts database. `npx drizzle-kit generate` turns a change here into a migration in `drizzle/`. */

const timestamp = (name: string) => integer(name, { mode: "timestamp_ms" });

/**
 * Incremented by every change that must invalidate earlier tokens, such as a new password or other roles. It starts at the time of
 * creation: tokens of a deleted account are not valid for a later account of the same name.
 */
const version = () => integer("version").notNull();

/** Grants of an account. A selector is as its author wrote it, and may refer to groups. */
export const StoredGrants = z.array(z.object({ role: z.enum(GRANT_ROLES), selector: z.string() })).nullable();
export type StoredGrant = NonNullable<z.output<typeof StoredGrants>>[number];

/** Null: the account operates all agents. */
const grants = () => text("grants", { mode: "json" }).$type<StoredGrant[]>();

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
    grants: grants(),
  },
  (table) => [index("users_admins").on(table.username).where(sql`is_admin`)],
);

export const agents = sqliteTable(
  "agents",
  {
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
    /** Labels that callers have set. Triggers copy them to `agentLabels`, together with those that the service sets. */
    labels: text("labels", { mode: "json" }).$type<Labels>().notNull().default({}),
    /** The account that emulates the agent: its id, and its name in the form of a label value. */
    ownerId: text("owner_id"),
    owner: text("owner"),
  },
  (table) => [index("agents_owner").on(table.ownerId).where(sql`owner_id is not null`)],
);

/** All labels of all agents, for lookups by label. Triggers on `agents` maintain it (drizzle/0007_labels.sql). */
export const agentLabels = sqliteTable(
  "agent_labels",
  { apId: text("ap_id").notNull(), key: text("key").notNull(), value: text("value").notNull() },
  (table) => [
    primaryKey({ columns: [table.apId, table.key] }),
    index("agent_labels_value").on(table.key, table.value, table.apId),
  ],
);

/** Named selectors. */
export const groups = sqliteTable("groups", {
  name: text("name").primaryKey(),
  selector: text("selector").notNull(),
  description: text("description").notNull(),
  updatedAt: timestamp("updated_at").notNull(),
});

export const apps = sqliteTable("apps", {
  id: text("id").primaryKey(),
  appName: text("app_name").notNull().unique(),
  sealedApiKey: text("sealed_api_key").notNull(),
  permissions: text("permissions", { mode: "json" }).$type<Record<string, unknown>>().notNull(),
  version: version(),
  createdAt: timestamp("created_at").notNull(),
  grants: grants(),
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

/** Tokens with which access points enrol themselves. `enrolmentUses` counts their uses. */
export const enrolmentTokens = sqliteTable("enrolment_tokens", {
  id: text("id").primaryKey(),
  /** SHA-256 in hexadecimal digits. */
  tokenHash: text("token_hash").notNull().unique(),
  /** The first characters of the token, by which people recognise it. */
  prefix: text("prefix").notNull(),
  description: text("description").notNull(),
  /** Labels of the agents that it enrols. */
  labels: text("labels", { mode: "json" }).$type<Labels>().notNull(),
  /** Null: unlimited. */
  maxUses: integer("max_uses"),
  /** Null: never. */
  expiresAt: timestamp("expires_at"),
  /** The author, in the form of the audit trail. */
  createdBy: text("created_by").notNull(),
  createdAt: timestamp("created_at").notNull(),
  revokedAt: timestamp("revoked_at"),
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
