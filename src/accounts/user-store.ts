import { eq, sql } from "drizzle-orm";
import * as z from "zod";
import { Duplicate } from "../errors.ts";
import { type Database, isUniqueViolation, reach } from "./database.ts";
import { users } from "./tables.ts";

const User = z.object({
  username: z.string(),
  passwordHash: z.string(),
  roles: z.array(z.string()),
  version: z.int(),
});
export type User = z.output<typeof User>;

export interface UserStore {
  find(username: string): Promise<User | undefined>;
  /** `Duplicate` where the name is taken; the unique index decides, so that of many at once exactly one gets it. */
  insert(user: Pick<User, "username" | "passwordHash" | "roles">): Promise<void>;
  ping(): Promise<void>;
}

export function createUserStore(database: Database): UserStore {
  return {
    async find(username) {
      const rows = await reach(
        database
          .select({
            username: users.username,
            passwordHash: users.passwordHash,
            roles: users.roles,
            version: users.version,
          })
          .from(users)
          .where(eq(users.username, username)),
      );
      return rows[0] === undefined ? undefined : User.parse(rows[0]);
    },

    async insert(user) {
      try {
        await reach(database.insert(users).values({ id: crypto.randomUUID(), createdAt: new Date(), ...user }));
      } catch (error) {
        throw isUniqueViolation(error) ? new Duplicate("User") : error;
      }
    },

    async ping() {
      await reach(database.run(sql`select 1`));
    },
  };
}
