import { existsSync } from "node:fs";
import { join, resolve } from "node:path";
import { createInterface } from "node:readline/promises";
import { text } from "node:stream/consumers";
import { createUserStore, type UserStore } from "../../src/accounts/user-store.ts";
import { DomainError } from "../../src/lib/errors.ts";
import { nativePasswords } from "../../src/programs/password-hasher/native-passwords.ts";
import { bold, print, UserError } from "../../src/programs/shared/cli.ts";
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
import { reencryptSecrets } from "./reencrypt-secrets.ts";
import { runGrantsCommand } from "./user-grants.ts";

const ACTOR = { kind: "console", name: "admin", requestId: "" } as const;

/** Runs a command of `npm run admin`. Throws a `UserError` if the command is unknown or the store rejects it. */
export async function runAdminCommand([command = "", email, ...more]: string[], role: string): Promise<void> {
  try {
    await run(command, email, more, role);
  } catch (error) {
    throw error instanceof DomainError ? new UserError(error.message) : error;
  }
}

async function run(command: string, email: string | undefined, more: string[], role: string): Promise<void> {
  switch (command) {
    case "create":
      return await createUser(parseEmail(email), role);
    case "list": {
      const all = await users().list({ offset: 0 });
      for (const { username, roles } of all) print(`${username.padEnd(40)} ${roles.join(",")}`);
      return print(`${all.length} users`);
    }
    case "reset-password": {
      const username = parseEmail(email);
      await users().update(username, { passwordHash: await newPasswordHash() }, ACTOR);
      return print(`Set a new password for ${bold(username)}. All earlier logins end.`);
    }
    case "promote": {
      const username = parseEmail(email);
      await users().update(username, { roles: ["admin"] }, ACTOR);
      return print(`${bold(username)} is now an administrator.`);
    }
    case "grants":
      return await runGrantsCommand(accountsDatabase(), parseEmail(email), more, ACTOR);
    case "rotate-keys":
      return await rotateSigningKeys();
    case "rotate-encryption":
      return await rotateEncryptionKey();
    case "reseal":
      return await reseal();
    case "rotate-pepper":
      return await rotatePepper();
    default:
      throw new UserError(`Unknown command "${command}". See npm run admin -- --help.`);
  }
}

async function createUser(username: string, role: string): Promise<void> {
  if (role !== "admin" && role !== "user") throw new UserError("--role must be admin or user.");
  await users().insert({ username, passwordHash: await newPasswordHash(), roles: [role] }, ACTOR);
  print(`Created ${bold(username)} with the role ${role}.`);
}

function parseEmail(text: string | undefined): string {
  const parsed = Email.safeParse(text);
  if (!parsed.success) throw new UserError("Name the user by a valid e-mail address.");
  return parsed.data;
}

const dataDir = (): string => resolve(process.env.DATA_DIR || ".data");

function accountsDatabase(): DatabaseOptions {
  const url = process.env.LIBSQL_URL || readUrls(dataDir())?.libsql;
  if (url === undefined)
    throw new UserError(`No product runs on ${dataDir()}. Start one (npm run dev), or set DATA_DIR or LIBSQL_URL.`);
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
  // readline echoes the input to its output. Without an output it echoes nothing.
  const lines = createInterface({ input: stdin, terminal: true });
  try {
    return await lines.question("");
  } finally {
    lines.close();
    stdout.write("\n");
  }
}

/** Returns the secrets of the data folder. Throws if there are none, instead of generating them. */
async function requireSecrets(): Promise<Secrets> {
  const file = join(dataDir(), "secrets.json");
  if (!existsSync(file)) throw new UserError(`${file} does not exist. Start the product once, or set DATA_DIR.`);
  return await loadSecrets(dataDir());
}

async function rotateSigningKeys(): Promise<void> {
  await requireSecrets();
  const { step, key } = await rotateKeys(dataDir());
  if (step === "published") {
    print(`Step 1 of 2: added key ${bold(key)}, which does not sign yet. Removed the key before the current one.`);
    print("Put it into service, wait five minutes, and run this command again.");
  } else
    print(`Step 2 of 2: key ${bold(key)} signs from now on. Tokens of the previous key stay valid until they expire.`);
  printHowToApply("JWT_KEYS");
}

async function rotateEncryptionKey(): Promise<void> {
  const { ENCRYPTION_KEY } = await requireSecrets();
  if (ENCRYPTION_KEY.includes(","))
    throw new UserError("A rotation is already in progress. Finish it with npm run admin -- reseal.");
  await renewSecret(dataDir(), "ENCRYPTION_KEY");
  print("Generated a new ENCRYPTION_KEY. The old one still decrypts.");
  print("Put it into service, then run npm run admin -- reseal.");
  printHowToApply("ENCRYPTION_KEY");
}

async function reseal(): Promise<void> {
  const keys = (await requireSecrets()).ENCRYPTION_KEY.split(",");
  if (keys.length === 1)
    throw new UserError("There is only one ENCRYPTION_KEY. Start a rotation with npm run admin -- rotate-encryption.");
  const count = await reencryptSecrets(accountsDatabase(), keys);
  // The service may have stored secrets under the old key during the first pass.
  const late = await reencryptSecrets(accountsDatabase(), keys);
  await dropFormerSecret(dataDir(), "ENCRYPTION_KEY");
  print(`Encrypted ${count + late} secrets with the new key. Removed the old ENCRYPTION_KEY from secrets.json.`);
  printHowToApply("ENCRYPTION_KEY");
}

async function rotatePepper(): Promise<void> {
  const { CREDENTIAL_PEPPER } = await requireSecrets();
  if (CREDENTIAL_PEPPER.includes(",")) {
    await dropFormerSecret(dataDir(), "CREDENTIAL_PEPPER");
    print("Removed the old CREDENTIAL_PEPPER. Emulated access points from before the rotation can no longer log in.");
  } else {
    await renewSecret(dataDir(), "CREDENTIAL_PEPPER");
    print("Generated a new CREDENTIAL_PEPPER. Emulated access points from before the rotation can still log in.");
    print("When their emulations have ended, run this command again.");
  }
  printHowToApply("CREDENTIAL_PEPPER");
}

const printHowToApply = (name: string): void =>
  print(`To put it into service, restart; for a deployed Worker, copy ${name} from secrets.json to its secrets.`);
