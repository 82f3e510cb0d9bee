import { randomBytes, randomUUID } from "node:crypto";
import { createClient } from "@libsql/client/http";
import { hash } from "@node-rs/argon2";
import { Refused } from "./console.ts";

export interface FirstAdministrator {
  username: string;
  /** Given only when the account was made just now with a password that nobody chose. */
  password?: string;
}

/** Makes the first administrator, unless there is one. */
export async function ensureAdministrator(
  database: { url: string; authToken?: string | undefined },
  username: string,
  chosenPassword: string | undefined,
): Promise<FirstAdministrator> {
  const client = createClient({ url: database.url, ...(database.authToken && { authToken: database.authToken }) });
  try {
    const { rows } = await client.execute(
      "select username from users where exists (select 1 from json_each(users.roles) where value = 'admin') order by created_at limit 1",
    );
    const existing = rows[0]?.username;
    if (typeof existing === "string") return { username: existing };

    const password = chosenPassword ?? randomBytes(15).toString("base64url");
    const { rowsAffected } = await client.execute({
      sql: "insert into users (id, username, password_hash, roles, created_at) values (?, ?, ?, ?, ?) on conflict do nothing",
      args: [randomUUID(), username, await hashPassword(password), JSON.stringify(["admin"]), Date.now()],
    });
    if (rowsAffected === 0)
      throw new Refused(`${username} exists and is no administrator. Set ADMIN_USERNAME to another name.`);
    return chosenPassword === undefined ? { username, password } : { username };
  } finally {
    client.close();
  }
}

const hashPassword = (password: string): Promise<string> =>
  hash(password, { memoryCost: 19_456, timeCost: 2, parallelism: 1 });
