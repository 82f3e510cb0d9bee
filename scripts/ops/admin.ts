import { existsSync } from "node:fs";
import { join, resolve } from "node:path";
import { createInterface } from "node:readline/promises";
import { text } from "node:stream/consumers";
import { parseArgs } from "node:util";
import { createUserStore, type UserStore } from "../../src/accounts/user-store.ts";
import { DomainError } from "../../src/lib/errors.ts";
import { nativePasswords } from "../../src/programs/password-hasher/native-passwords.ts";
import { bold, print, red, UserError } from "../../src/programs/shared/cli.ts";
import { CONFIG_HELP, CONFIG_OPTION, loadConfiguration } from "../../src/programs/shared/config-file.ts";
import { readUrls } from "../../src/programs/stack/data-folder.ts";
import {
  dropFormerSecret,
  loadSecrets,
  renewSecret,
  rotateKeys,
  type Secrets,
} from "../../src/programs/stack/stack-secrets.ts";
import { Email, Password } from "../../src/schemas/primitives.ts";
import { createDatabase, type DatabaseOptions } from "../../src/storage/libsql.ts";
import { reseal } from "./rotate-keys.ts";

const HELP = `npm run admin -- <command>

  create <e-mail> [--role user]   make an administrator, or with --role user a standard user
  list                            all users and their roles
  reset-password <e-mail>         set a new password and end all sign-ins
  promote <e-mail>                make a user an administrator
  rotate-keys                     the next step of a change of signing keys (docs/accounts.md)
  rotate-encryption               a new ENCRYPTION_KEY, the former one beside it (docs/operations.md)
  reseal                          everything under the new ENCRYPTION_KEY; the former one goes
  rotate-pepper                   a new CREDENTIAL_PEPPER, the former one beside it; once more, and the former one goes

  ${CONFIG_HELP}

It works on the accounts database of a stack that runs on this machine (DATA_DIR, default .data), or on the one that LIBSQL_URL
and LIBSQL_AUTH_TOKEN name. Passwords are asked for, without echo, or read from standard input.`;

const BY = { kind: "console", name: "admin", requestId: "" } as const;

async function main(): Promise<void> {
  const { values, positionals } = parseArguments();
  const [command, name] = positionals;
  if (values.help || command === undefined) return print(HELP);
  loadConfiguration(values.config);
  switch (command) {
    case "create": {
      const username = emailFrom(name);
      if (values.role !== "admin" && values.role !== "user") throw new UserError("--role must be admin or user.");
      const user = { username, passwordHash: await newPasswordHash(), roles: [values.role] as ("admin" | "user")[] };
      await users().insert(user, BY);
      return print(`${bold(username)} is made, with the role ${values.role}.`);
    }
    case "list": {
      const all = await users().list({ offset: 0 });
      for (const { username, roles } of all) print(`${username.padEnd(40)} ${roles.join(",")}`);
      return print(`${all.length} users`);
    }
    case "reset-password": {
      const username = emailFrom(name);
      await users().update(username, { passwordHash: await newPasswordHash() }, BY);
      return print(`${bold(username)} has a new password; earlier sign-ins end.`);
    }
    case "promote": {
      const username = emailFrom(name);
      await users().update(username, { roles: ["admin"] }, BY);
      return print(`${bold(username)} is an administrator now.`);
    }
    case "rotate-keys":
      return await rotate();
    case "rotate-encryption":
      return await rotateEncryption();
    case "reseal":
      return await resealAll();
    case "rotate-pepper":
      return await rotatePepper();
    default:
      throw new UserError(`There is no command "${command}". Try --help.`);
  }
}

function parseArguments() {
  const help = { type: "boolean", short: "h" } as const;
  const options = { help, role: { type: "string", default: "admin" }, ...CONFIG_OPTION } as const;
  try {
    return parseArgs({ options, allowPositionals: true });
  } catch (error) {
    throw new UserError(`${error instanceof Error ? error.message : error} Try --help.`);
  }
}

function emailFrom(text: string | undefined): string {
  const parsed = Email.safeParse(text);
  if (!parsed.success) throw new UserError("Name the user by an e-mail address.");
  return parsed.data;
}

const dataDir = (): string => resolve(process.env.DATA_DIR || ".data");

function accountsDatabase(): DatabaseOptions {
  const url = process.env.LIBSQL_URL || readUrls(dataDir())?.libsql;
  if (url === undefined) throw new UserError("No stack runs here. Start one (npm run dev), or set LIBSQL_URL.");
  return { url, authToken: process.env.LIBSQL_AUTH_TOKEN || undefined };
}

const users = (): UserStore => createUserStore(createDatabase(accountsDatabase()));

async function newPasswordHash(): Promise<string> {
  const password = Password.safeParse(await readPassword());
  if (!password.success) throw new UserError("A password has 8 to 128 characters.");
  return await nativePasswords.hash(password.data);
}

async function readPassword(): Promise<string> {
  const { stdin, stdout } = process;
  if (!stdin.isTTY) return (await text(stdin)).replace(/\r?\n$/, "");
  stdout.write("New password: ");
  // readline echoes what is typed to its output, so it gets none.
  const lines = createInterface({ input: stdin, terminal: true });
  try {
    return await lines.question("");
  } finally {
    lines.close();
    stdout.write("\n");
  }
}

async function presentSecrets(): Promise<Secrets> {
  const file = join(dataDir(), "secrets.json");
  if (!existsSync(file)) throw new UserError(`There is no ${file}. Start a stack there first, or set DATA_DIR.`);
  return await loadSecrets(dataDir());
}

async function rotateEncryption(): Promise<void> {
  const { ENCRYPTION_KEY } = await presentSecrets();
  if (ENCRYPTION_KEY.includes(",")) throw new UserError("A change is under way already. Finish it with reseal.");
  await renewSecret(dataDir(), "ENCRYPTION_KEY");
  print("There is a new ENCRYPTION_KEY; what is sealed with the former one can still be read.");
  print("Bring it into service, and then: npm run admin -- reseal");
  sayHowToServe("ENCRYPTION_KEY");
}

async function resealAll(): Promise<void> {
  const keys = (await presentSecrets()).ENCRYPTION_KEY.split(",");
  if (keys.length === 1) throw new UserError("There is one ENCRYPTION_KEY only: nothing to seal again.");
  const count = await reseal(accountsDatabase(), keys);
  // What came in while the first look went on.
  const late = await reseal(accountsDatabase(), keys);
  await dropFormerSecret(dataDir(), "ENCRYPTION_KEY");
  print(`${count + late} secrets are sealed anew; the former ENCRYPTION_KEY is gone from secrets.json.`);
  sayHowToServe("ENCRYPTION_KEY");
}

async function rotatePepper(): Promise<void> {
  const { CREDENTIAL_PEPPER } = await presentSecrets();
  if (CREDENTIAL_PEPPER.includes(",")) {
    await dropFormerSecret(dataDir(), "CREDENTIAL_PEPPER");
    print("The former CREDENTIAL_PEPPER is gone: emulated access points from before the change cannot log in again.");
  } else {
    await renewSecret(dataDir(), "CREDENTIAL_PEPPER");
    print("There is a new CREDENTIAL_PEPPER; emulated access points from before the change can still log in.");
    print("When they are over, run this command once more.");
  }
  sayHowToServe("CREDENTIAL_PEPPER");
}

const sayHowToServe = (name: string): void =>
  print(`In service: restart; or, for a deployed Worker, put ${name} of secrets.json in its secrets.`);

async function rotate(): Promise<void> {
  await presentSecrets();
  const { step, key } = await rotateKeys(dataDir());
  if (step === "published") {
    print(`Step 1 of 2: key ${bold(key)} is known, and signs nothing yet. The key before the present one is gone.`);
    print("Bring it into service, give it five minutes to get about, and run this command again.");
  } else print(`Step 2 of 2: key ${bold(key)} signs from now on; tokens of the former one stay good until they end.`);
  sayHowToServe("JWT_KEYS");
}

try {
  await main();
} catch (error) {
  if (!(error instanceof UserError || error instanceof DomainError)) throw error;
  print(red(error.message));
  process.exitCode = 1;
}
