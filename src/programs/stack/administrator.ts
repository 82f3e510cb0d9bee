import { randomBytes } from "node:crypto";
import { createUserStore } from "../../accounts/user-store.ts";
import { Duplicate } from "../../lib/errors.ts";
import { createDatabase, type DatabaseOptions } from "../../storage/libsql.ts";
import { nativePasswords } from "../password-hasher/native-passwords.ts";
import { UserError } from "../shared/cli.ts";

export interface FirstAdministrator {
  username: string;
  /** Set only if the account was created just now with a generated password. */
  password?: string;
}

/** Creates the first administrator, unless there is one. */
export async function ensureAdministrator(
  database: DatabaseOptions,
  username: string,
  chosenPassword: string | undefined,
): Promise<FirstAdministrator> {
  const users = createUserStore(createDatabase(database));
  const [existing] = await users.administrators();
  if (existing !== undefined) return { username: existing };

  const password = chosenPassword ?? randomBytes(15).toString("base64url");
  try {
    const passwordHash = await nativePasswords.hash(password);
    await users.insert({ username, passwordHash, roles: ["admin"] }, { kind: "console", name: "start", requestId: "" });
  } catch (error) {
    if (!(error instanceof Duplicate)) throw error;
    throw new UserError(
      `The user ${username} exists but is not an administrator. Set ADMIN_USERNAME to another e-mail address.`,
    );
  }
  return chosenPassword === undefined ? { username, password } : { username };
}
