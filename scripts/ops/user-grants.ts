import type { AuditActor } from "../../src/accounts/audit.ts";
import { checkGrants } from "../../src/accounts/grants.ts";
import { createGroupStore } from "../../src/accounts/group-store.ts";
import { createUserStore } from "../../src/accounts/user-store.ts";
import { Invalid } from "../../src/lib/errors.ts";
import { bold, print, UserError } from "../../src/programs/shared/cli.ts";
import { Grants } from "../../src/schemas/grants.ts";
import { createDatabase, type DatabaseOptions } from "../../src/storage/libsql.ts";

/** Prints the grants of a user. Replaces them first if `given` is not empty: `none`, or roles with optional selectors. */
export async function runGrantsCommand(
  options: DatabaseOptions,
  username: string,
  given: readonly string[],
  by: AuditActor,
): Promise<void> {
  const database = createDatabase(options);
  const users = createUserStore(database);
  if (given.length > 0) {
    const grants = parseGrants(given);
    try {
      await checkGrants(createGroupStore(database), grants);
    } catch (error) {
      throw error instanceof Invalid ? new UserError(error.items.map(({ msg }) => msg).join("\n")) : error;
    }
    await users.update(username, { grants }, by);
  }
  const user = await users.find(username);
  if (user === undefined) throw new UserError("User not found");
  const { grants, roles } = user;
  if (roles.includes("admin")) print("Grants do not limit administrators.");
  if (grants === null) return print(`${bold(username)} operates all access points.`);
  for (const { role, selector } of grants) print(`${role.padEnd(8)} ${selector === "" ? "(all)" : selector}`);
  print(`${grants.length} grants of ${bold(username)}`);
}

/** `operator` alone means the operator of all access points, as for an account without grants. */
function parseGrants(given: readonly string[]): Grants["grants"] {
  if (given.length === 1 && given[0] === "none") return [];
  if (given.length === 1 && given[0] === "operator") return null;
  const grants = given.map((text) => {
    const [role = "", ...selector] = text.split(":");
    return { role, selector: selector.join(":") };
  });
  const parsed = Grants.safeParse({ grants });
  if (parsed.success) return parsed.data.grants;
  const errors = parsed.error.issues.map(({ path, message }) => `${given[Number(path[1])] ?? "grants"}: ${message}`);
  throw new UserError(errors.join("\n"));
}
