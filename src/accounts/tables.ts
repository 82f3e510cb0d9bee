import { integer, sqliteTable, text } from "drizzle-orm/sqlite-core";

/** The accounts database. `npx drizzle-kit generate` turns a change here into a migration in `drizzle/`. */

export const users = sqliteTable("users", {
  id: text("id").primaryKey(),
  /** E-mail address, trimmed and in lower case. */
  username: text("username").notNull().unique(),
  passwordHash: text("password_hash").notNull(),
  roles: text("roles", { mode: "json" }).$type<string[]>().notNull(),
  /** Raised by whatever must end the tokens given out so far: a new password, other roles. */
  version: integer("version").notNull().default(1),
  createdAt: integer("created_at", { mode: "timestamp_ms" }).notNull(),
});
